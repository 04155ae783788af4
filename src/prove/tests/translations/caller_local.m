const N: 2; type S: scalarset(N); var f: boolean; ok: boolean; startstate begin f := false; ok := true; end;
procedure p(var x: boolean); begin for s: S do x := true; end; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> var a: boolean; b: boolean; begin a := false; b := false; p(b); if b then ok := false; end; end;
invariant "ok" ok;
