const N: 2; type S: scalarset(N);
var x: array [S] of boolean; next: array [S] of S; owner: S;
function f(s: S): boolean;
begin if s = owner then return x[next[s]] | !x[s]; end; return true; end;
ruleset s: S do startstate
  for t: S do x[t] := false; next[t] := t; end; owner := s;
end; end;
ruleset s: S do alias a: x[s] do
  rule forall t: S do f(t) end ==> begin a := true; end;
end; end;
invariant forall s: S do !x[s] end;
