const k1: 3;
const k2: 1;
type E0: enum {E0m0, E0m1, E0m2};
type S0: scalarset(3);
var x3: 0..1;
var x4: record f0: array [boolean] of boolean; end;
var x5: array [boolean] of record f0: S0; end;
procedure h6(var p7: 0..1); begin if (k1 >= p7) then p7 := (p7 + (p7 % 3)); p7 := ((((-p7)) % 2) + 2) % 2 + 0; end; end;
ruleset i0s0: S0 do startstate "begin" begin x3 := 0; for i8: boolean do x4.f0[i8] := true; end; for i9: boolean do x5[i9].f0 := i0s0; end;  end;
 end;
ruleset i0s0: S0 do startstate begin x3 := 1; for i10: boolean do x4.f0[i10] := i10; end; for i11: boolean do x5[i11].f0 := i0s0; end;  end;
 end;
rule isundefined(x5[false].f0) ==> begin  end;
ruleset i13: 1..1 do
rule ((x5[false].f0 = x5[false].f0) -> (2 >= k2)) ==> var v15: E0; begin v15 := E0m1; for i16: S0 do if ((i13 != 3) -> (exists i17: E0 do true end)) then x5[false].f0 := i16; elsif ((k2 <= 3) & (v15 = E0m0)) then x4.f0[false] := (k1 != (x3 - 2)); else v15 := ((i13 > x3) ? E0m2 : E0m0); x5[false].f0 := i16; end; v15 := (x4.f0[true] ? (x4.f0[false] ? E0m2 : E0m2) : ((1 < 3) ? E0m1 : E0m1)); end; end;
end;
ruleset i18: 1..3 do
ruleset i19: boolean do
invariant "property 20" (((k1 < 1) | (i19 -> i19)) | ((-i18) = (k2 + k1)));
end;
end;
