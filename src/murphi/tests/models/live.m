type P: scalarset(3);
     S: enum {A, B};
var s: array[P] of S;
ruleset p: P do rule "up" forall q: P do s[q] = A end ==> s[p] := B; end;
rule "down" s[p] = B ==> s[p] := A; end; end;
startstate for p: P do s[p] := A; end; end;
ruleset p: P do liveness "l" s[p] = B; end;
