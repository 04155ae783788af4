const N: 2;
type P: scalarset(N);
     S: 0..7;
var s: array[P] of S;
    dead: boolean;
ruleset p: P do rule "step" s[p] != 4 ==> if s[p] = 3 then s[p] := 5; elsif s[p] = 7 then s[p] := 0; else s[p] := s[p] + 1; end; end;
rule "die" !dead & s[p] = 0 ==> s[p] := 4; dead := true; end; end;
startstate for p: P do s[p] := 0; end; dead := false; end;
ruleset p: P do liveness "alive" s[p] != 4; end;
