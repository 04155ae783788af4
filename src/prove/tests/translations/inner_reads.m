const N: 2; type S: scalarset(N); var f: boolean; A: array [S] of boolean; M: array [S] of array [S] of boolean; 
startstate begin f := false; for s: S do A[s] := true; for t: S do M[s][t] := true; end; end; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> begin for s: S do A[s] := true; end; for s: S do for t: S do M[s][t] := A[t]; end; A[s] := false; end; end;
ruleset s: S; t: S do invariant "i" M[s][t] end;
