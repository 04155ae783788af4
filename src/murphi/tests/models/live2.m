type P: scalarset(2);
     S: enum {A, D, B};
var s: array[P] of S;
    dead: boolean;
ruleset p: P do rule "up" s[p] = A ==> s[p] := B; end;
rule "down" s[p] = B ==> s[p] := A; end;
rule "die" !dead ==> s[p] := D; dead := true; end; end;
startstate for p: P do s[p] := A; end; dead := false; end;
ruleset p: P do liveness "l" s[p] = B; end;
