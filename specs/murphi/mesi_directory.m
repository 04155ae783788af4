-- MESI caches with a directory and write-backs: sequential consistency, if the protocol is right.
--
-- As msi_directory.m, with two additions. A reader without other readers gets an exclusive copy,
-- which it may write without a message. A cache may put an exclusive or modified copy back; the
-- value stays in a buffer until the home has it, and the cache obeys orders from the buffer.
-- Interface: mesi_directory.interface. Seeded faults: mesi_directory.faults.

const
  CACHES: 2;
  ADDRESSES: 2;
  VALUES: 1;     -- values that are stored; memory starts with 0

type
  Cache: scalarset(CACHES);
  Address: scalarset(ADDRESSES);
  Value: 0..VALUES;
  State: enum {Invalid, Shared, Exclusive, Modified};
  Demand: enum {Nothing, GetShared, GetModified};
  Order: enum {Silent, Invalidate, Fetch, Take};   -- from the home to a cache
  Reply: enum {Quiet, Ack, Data};                   -- from a cache to the home
  Buffer: enum {Empty, Clean, Dirty, Stale};        -- Stale: another cache took the value

var
  line: array [Cache] of array [Address] of record state: State; data: Value; end;
  want: array [Cache] of record demand: Demand; at: Address; end;
  order: array [Cache] of record kind: Order; at: Address; end;
  reply: array [Cache] of record kind: Reply; data: Value; end;
  grant: array [Cache] of record state: State; data: Value; end;
  back: array [Cache] of record kind: Buffer; at: Address; data: Value; end;
  home: array [Address] of record
    memory: Value;
    owner: Cache;                      -- undefined without an exclusive or modified copy
    sharer: array [Cache] of boolean;
  end;
  served: Cache;                       -- undefined while the home is idle
  waiting: array [Cache] of boolean;   -- the home waits for a reply

startstate begin
  for p: Cache do
    for a: Address do line[p][a].state := Invalid; line[p][a].data := 0; end;
    want[p].demand := Nothing;
    order[p].kind := Silent;
    reply[p].kind := Quiet;
    grant[p].state := Invalid;
    back[p].kind := Empty;
    waiting[p] := false;
  end;
  for a: Address do
    home[a].memory := 0;
    for p: Cache do home[a].sharer[p] := false; end;
  end;
end;

procedure send(p: Cache; kind: Order; a: Address); begin
  order[p].kind := kind; order[p].at := a; waiting[p] := true;
end;

-- True if the buffer of a cache has a value of the address.
function buffered(p: Cache; a: Address): boolean; begin
  return back[p].kind != Empty & back[p].at = a;
end;

-- Memory operations: hits.
ruleset p: Cache; a: Address do
  rule "load" line[p][a].state != Invalid ==> begin end;

  ruleset v: 1..VALUES do
    rule "store" line[p][a].state = Exclusive | line[p][a].state = Modified ==> begin
      line[p][a].state := Modified; line[p][a].data := v;
    end;
  end;

  -- Misses.
  rule "read miss"
    line[p][a].state = Invalid & want[p].demand = Nothing & !buffered(p, a) ==>
  begin
    want[p].demand := GetShared; want[p].at := a;
  end;
  rule "write miss"
    (line[p][a].state = Invalid | line[p][a].state = Shared) & want[p].demand = Nothing &
    !buffered(p, a) ==>
  begin
    want[p].demand := GetModified; want[p].at := a;
  end;

  -- A shared copy leaves without a message.
  rule "evict" line[p][a].state = Shared ==> begin line[p][a].state := Invalid; end;
  rule "put back"
    (line[p][a].state = Exclusive | line[p][a].state = Modified) & back[p].kind = Empty ==>
  begin
    back[p].kind := line[p][a].state = Modified ? Dirty : Clean;
    back[p].at := a; back[p].data := line[p][a].data;
    line[p][a].state := Invalid;
  end;
end;

ruleset p: Cache do
  alias a: want[p].at; do
    -- The home begins to serve a request.
    rule "serve" isundefined(served) & want[p].demand != Nothing & grant[p].state = Invalid ==>
    begin
      served := p;
      if !isundefined(home[a].owner) then
        if home[a].owner != p then
          send(home[a].owner, want[p].demand = GetShared ? Fetch : Take, a);
        end;
      elsif want[p].demand = GetModified then
        for q: Cache do
          if q != p & home[a].sharer[q] then send(q, Invalidate, a); end;
        end;
      end;
    end;

    -- The home answers.
    rule "grant" !isundefined(served) & served = p & forall q: Cache do !waiting[q] end ==> begin
      grant[p].data := home[a].memory;
      if want[p].demand = GetModified then
        grant[p].state := Modified;
        for q: Cache do home[a].sharer[q] := false; end;
        home[a].owner := p;
      elsif isundefined(home[a].owner) & !exists q: Cache do q != p & home[a].sharer[q] end then
        grant[p].state := Exclusive;
        home[a].sharer[p] := false;
        home[a].owner := p;
      else
        grant[p].state := Shared;
        if !isundefined(home[a].owner) then
          home[a].sharer[home[a].owner] := true;
          undefine home[a].owner;
        end;
        home[a].sharer[p] := true;
      end;
      undefine served;
    end;
  end;

  rule "receive" grant[p].state != Invalid ==> begin
    alias own: line[p][want[p].at]; do
      own.state := grant[p].state;
      own.data := grant[p].data;
    end;
    grant[p].state := Invalid; undefine grant[p].data;
    want[p].demand := Nothing; undefine want[p].at;
  end;

  -- A cache obeys the home, after it received what the home granted before. The answer comes from
  -- the line or from the buffer. A line that left silently, or whose value the home has, is
  -- acknowledged without a value.
  rule "obey" order[p].kind != Silent & grant[p].state = Invalid ==> begin
    alias own: line[p][order[p].at]; do
      if order[p].kind = Invalidate then
        own.state := Invalid;
        reply[p].kind := Ack;
      elsif own.state != Invalid then
        reply[p].kind := Data; reply[p].data := own.data;
        own.state := order[p].kind = Fetch ? Shared : Invalid;
      elsif buffered(p, order[p].at) then
        reply[p].kind := Data; reply[p].data := back[p].data;
        back[p].kind := Stale;
      else
        reply[p].kind := Ack;
      end;
    end;
    order[p].kind := Silent; undefine order[p].at;
  end;

  rule "collect" reply[p].kind != Quiet ==> begin
    if reply[p].kind = Data then home[want[served].at].memory := reply[p].data; end;
    reply[p].kind := Quiet; undefine reply[p].data;
    waiting[p] := false;
  end;

  -- The home takes a value that a cache puts back, while it serves no request.
  rule "take back" back[p].kind != Empty & isundefined(served) & order[p].kind = Silent ==> begin
    alias entry: home[back[p].at]; do
      if !isundefined(entry.owner) & entry.owner = p & back[p].kind != Stale then
        if back[p].kind = Dirty then entry.memory := back[p].data; end;
        undefine entry.owner;
      end;
    end;
    back[p].kind := Empty; undefine back[p].at; undefine back[p].data;
  end;
end;

invariant "one writer or many readers"
  forall a: Address do forall p: Cache do forall q: Cache do
    p = q | line[q][a].state = Invalid
    | line[p][a].state != Modified & line[p][a].state != Exclusive
  end end end;

cover "a cache reads what another one stored"
  exists p: Cache do exists q: Cache do exists a: Address do
    p != q & line[p][a].state = Shared & line[q][a].state = Shared & line[p][a].data = 1
  end end end;
cover "an order finds its value in the buffer"
  exists p: Cache do back[p].kind = Stale end;
