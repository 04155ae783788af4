const N: 2;
type S: scalarset(N);
var a: array [S] of boolean; last: boolean; who: S; mark: array [S] of 0..2; flag: boolean;
startstate begin for n: S do a[n] := false; mark[n] := 0; end; last := false; undefine who; flag := false; end;
ruleset s: S do
  ruleset t: S do
    rule "move" s != t ==> begin a[s] := true; last := a[t]; a[t] := last; end;
    rule "hand" s != t & !isundefined(who) ==> begin a[who] := !a[s]; who := t; end;
  end;
  rule "mark" mark[s] = 0 ==> begin mark[s] := 1; flag := true; who := s; end;
  rule "test" mark[s] > 0 ==>
  begin for n: S do if n = s then assert flag; end; end; mark[s] := 2; end;
end;
