const N: 2; type S: scalarset(N); var f: boolean; z: 0..1; startstate begin f := false; z := 0; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> begin put 1 / z; f := false; end;
