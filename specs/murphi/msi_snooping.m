-- MSI caches on a snooping bus with write-back buffers: sequential consistency, if the protocol is
-- right.
--
-- A miss waits for the bus. The bus carries one request at a time: every other cache snoops it,
-- each at its own time, then memory responds. A modified line that is evicted waits in a buffer.
-- Interface: msi_snooping.interface. Seeded faults: msi_snooping.faults.

const
  CACHES: 2;
  ADDRESSES: 2;
  VALUES: 1;     -- values that are stored; memory starts with 0

type
  Cache: scalarset(CACHES);
  Address: scalarset(ADDRESSES);
  Value: 0..VALUES;
  State: enum {Invalid, Shared, Modified};
  Demand: enum {Nothing, Read, Write, Upgrade};   -- Upgrade: a write of a shared copy, without data

var
  line: array [Cache] of array [Address] of record state: State; data: Value; end;
  want: array [Cache] of record demand: Demand; at: Address; end;
  buffer: array [Cache] of record full: boolean; at: Address; data: Value; end;
  memory: array [Address] of Value;
  bus: record demand: Demand; from: Cache; at: Address; end;
  pending: array [Cache] of boolean;              -- the cache has not snooped the request

startstate begin
  for p: Cache do
    for a: Address do line[p][a].state := Invalid; line[p][a].data := 0; end;
    want[p].demand := Nothing;
    buffer[p].full := false;
    pending[p] := false;
  end;
  for a: Address do memory[a] := 0; end;
  bus.demand := Nothing;
end;

-- True if the value of an address waits in the buffer of a cache.
function buffered(p: Cache; a: Address): boolean; begin
  return buffer[p].full & buffer[p].at = a;
end;

procedure empty(p: Cache); begin
  buffer[p].full := false; undefine buffer[p].at; undefine buffer[p].data;
end;

-- Memory operations: hits.
ruleset p: Cache; a: Address do
  rule "load" line[p][a].state != Invalid ==> begin end;

  ruleset v: 1..VALUES do
    rule "store" line[p][a].state = Modified ==> begin line[p][a].data := v; end;
  end;

  -- Misses.
  rule "read miss" line[p][a].state = Invalid & want[p].demand = Nothing ==> begin
    want[p].demand := Read; want[p].at := a;
  end;
  rule "write miss" line[p][a].state != Modified & want[p].demand = Nothing ==> begin
    want[p].demand := line[p][a].state = Shared ? Upgrade : Write; want[p].at := a;
  end;

  rule "evict" line[p][a].state != Invalid & !buffer[p].full ==> begin
    if line[p][a].state = Modified then
      buffer[p].full := true; buffer[p].at := a; buffer[p].data := line[p][a].data;
    end;
    line[p][a].state := Invalid;
  end;
end;

ruleset p: Cache do
  -- The bus takes a request. An upgrade needs data if the copy has left meanwhile.
  rule "request"
    bus.demand = Nothing & want[p].demand != Nothing & !buffered(p, want[p].at) ==>
  begin
    if want[p].demand = Upgrade & line[p][want[p].at].state = Invalid then
      want[p].demand := Write;
    end;
    bus.demand := want[p].demand; bus.from := p; bus.at := want[p].at;
    for q: Cache do pending[q] := q != p; end;
  end;

  -- Another cache sees the request.
  rule "snoop" pending[p] ==> begin
    pending[p] := false;
    alias own: line[p][bus.at]; do
      if own.state = Modified then memory[bus.at] := own.data; end;
      if bus.demand != Read then
        own.state := Invalid;
      elsif own.state = Modified then
        own.state := Shared;
      end;
    end;
    if buffered(p, bus.at) then
      memory[bus.at] := buffer[p].data;
      empty(p);
    end;
  end;

  rule "respond"
    bus.demand != Nothing & bus.from = p & forall q: Cache do !pending[q] end ==>
  begin
    alias own: line[p][bus.at]; do
      if bus.demand = Read then
        own.state := Shared; own.data := memory[bus.at];
      elsif bus.demand = Write then
        own.state := Modified; own.data := memory[bus.at];
      elsif own.state = Shared then
        own.state := Modified;
      end;
    end;
    bus.demand := Nothing; undefine bus.from; undefine bus.at;
    want[p].demand := Nothing; undefine want[p].at;
  end;

  rule "write back" buffer[p].full ==> begin
    memory[buffer[p].at] := buffer[p].data;
    empty(p);
  end;
end;

invariant "one writer or many readers"
  forall a: Address do forall p: Cache do forall q: Cache do
    p = q | line[p][a].state != Modified | line[q][a].state = Invalid
  end end end;

cover "a cache reads what another one stored"
  exists p: Cache do exists q: Cache do exists a: Address do
    p != q & line[p][a].state = Shared & line[q][a].state = Shared & line[p][a].data = 1
  end end end;
