const N: 2; type S: scalarset(N); var f: boolean; ok: boolean; startstate begin f := false; ok := true; end;
function g(s: S): boolean; begin ok := false; return true; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> begin if forall s: S do g(s) end then end; end;
invariant "i" ok;
