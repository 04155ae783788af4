const N: 2; type S: scalarset(N); var f: boolean; ok: boolean; startstate begin f := false; ok := true; end;
ruleset a: S; b: S; c: S; d: S do rule "four" a != b & a != c & a != d & b != c & b != d & c != d ==> begin f := true; end; end;
rule f ==> var t: boolean; begin for s: S do t := true; end; if !isundefined(t) then ok := false; end; end;
invariant "ok" ok;
