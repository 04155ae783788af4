const N: 2; LAST: 2;
type S: scalarset(N); V: 0..LAST; K: enum {Read, Write, Stop};
  L: record valid: boolean; dirty: boolean; value: V; end;
var line: array [S] of L; copy: L; turn: S; kind: K; slots: array [V] of boolean;
  head: V; count: V; log: array [S] of V; spare: S; armed: boolean;
function next(v: V): V; begin if v = LAST then return 0; end; return v + 1; end;
function least(a: V; b: V): V; begin if a <= b then return a; else return b; end; end;
ruleset s: S do startstate "here" begin
  for n: S do clear line[n]; log[n] := 0; end; clear copy; turn := s; kind := Stop;
  for v: V do slots[v] := false; end; head := 0; count := 0; undefine spare; armed := false;
end; end;
rule "turn" kind = Stop ==> begin kind := Read; end;
ruleset s: S do
  rule "fill" kind = Read & turn = s & !line[s].valid ==>
  begin
    line[s].valid := true; line[s].dirty := false; line[s].value := least(head, count);
    for n: S do if n != s then line[n].valid := false; line[n].dirty := false; end; end;
    kind := Write; spare := s;
  end;
  rule "dirty" kind = Write & line[s].valid & !isundefined(spare) & spare = s ==>
  begin
    line[s].dirty := true; line[s].value := next(line[s].value); copy := line[s];
    undefine spare; armed := true;
  end;
  ruleset t: S do
    rule "pass" turn = s & kind = Write & armed ==>
    begin
      turn := t; armed := false;
      if s = t then log[s] := 0; elsif log[t] < LAST then log[t] := log[t] + 1; else log[t] := head; end;
      switch kind
        case Read: error "reads";
        case Write, Stop: kind := Stop;
      end;
    end;
  end;
  rule "drop" kind = Read & line[s].valid & turn = s ==>
  begin if line[s].dirty then line[s].dirty := false; else line[s].valid := false; end; end;
end;
ruleset v: V do
  rule "push" !slots[v] & head < LAST ==> begin slots[head] := true; head := head + 1; slots[v] := true; end;
  rule "pop" slots[v] & head > 0 ==>
  var i: V;
  begin
    head := head - 1; i := 0;
    while i < head do i := i + 1; end;
    slots[i] := false; slots[v] := false; count := LAST - head;
    if count >= 1 -> head <= 1 then count := 0; end;
    assert count <= LAST & 2 / (head + 1) >= 0;
  end;
end;
invariant "one" forall a: S do forall b: S do line[a].valid & line[b].valid -> a = b end end;
invariant "dirty" forall a: S do line[a].dirty -> line[a].valid end;
invariant "copy" copy.dirty -> copy.valid;
invariant "spare" isundefined(spare) | line[spare].valid;
invariant "armed" armed -> kind = Write & isundefined(spare);
