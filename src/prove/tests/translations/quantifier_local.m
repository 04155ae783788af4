const N: 2; type S: scalarset(N); var f: boolean; z: 0..1; startstate begin f := false; z := 0; end;
procedure w(var x: boolean); begin x := true; end;
function g(var x: boolean): boolean; begin x := true; return true; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> var k: boolean; begin k := false; if forall s: S do g(k) end & k then error "k" end; end;
