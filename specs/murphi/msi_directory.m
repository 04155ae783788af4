-- MSI caches with a directory: sequential consistency, if the protocol is right.
--
-- The home of all addresses serves one request at a time. It invalidates the copies of others, or
-- fetches the modified one, before it answers. Each cache has one request of its own and one
-- message from the home under way. Messages to different caches overtake each other.
-- Interface: msi_directory.interface. Seeded faults: msi_directory.faults.

const
  CACHES: 2;
  ADDRESSES: 2;
  VALUES: 1;     -- values that are stored; memory starts with 0

type
  Cache: scalarset(CACHES);
  Address: scalarset(ADDRESSES);
  Value: 0..VALUES;
  State: enum {Invalid, Shared, Modified};
  Demand: enum {Nothing, GetShared, GetModified};
  Order: enum {Silent, Invalidate, Fetch, Take};   -- from the home to a cache
  Reply: enum {Quiet, Ack, Data};                   -- from a cache to the home

var
  line: array [Cache] of array [Address] of record state: State; data: Value; end;
  want: array [Cache] of record demand: Demand; at: Address; end;
  order: array [Cache] of record kind: Order; at: Address; end;
  reply: array [Cache] of record kind: Reply; data: Value; end;
  grant: array [Cache] of record state: State; data: Value; end;
  home: array [Address] of record
    memory: Value;
    owner: Cache;                      -- undefined without a modified copy
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

-- Memory operations: hits.
ruleset p: Cache; a: Address do
  rule "load" line[p][a].state != Invalid ==> begin end;

  ruleset v: 1..VALUES do
    rule "store" line[p][a].state = Modified ==> begin line[p][a].data := v; end;
  end;

  -- Misses.
  rule "read miss" line[p][a].state = Invalid & want[p].demand = Nothing ==> begin
    want[p].demand := GetShared; want[p].at := a;
  end;
  rule "write miss" line[p][a].state != Modified & want[p].demand = Nothing ==> begin
    want[p].demand := GetModified; want[p].at := a;
  end;
  -- A clean copy leaves without a message.
  rule "evict" line[p][a].state = Shared ==> begin line[p][a].state := Invalid; end;
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
      if want[p].demand = GetShared then
        grant[p].state := Shared;
        if !isundefined(home[a].owner) then
          home[a].sharer[home[a].owner] := true;
          undefine home[a].owner;
        end;
        home[a].sharer[p] := true;
      else
        grant[p].state := Modified;
        for q: Cache do home[a].sharer[q] := false; end;
        home[a].owner := p;
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

  -- A cache obeys the home, after it received what the home granted before.
  rule "obey" order[p].kind != Silent & grant[p].state = Invalid ==> begin
    alias own: line[p][order[p].at]; do
      switch order[p].kind
        case Invalidate:
          own.state := Invalid;
          reply[p].kind := Ack;
        case Fetch:
          reply[p].kind := Data; reply[p].data := own.data;
          own.state := Shared;
        case Take:
          reply[p].kind := Data; reply[p].data := own.data;
          own.state := Invalid;
      end;
    end;
    order[p].kind := Silent; undefine order[p].at;
  end;

  rule "collect" reply[p].kind != Quiet ==> begin
    if reply[p].kind = Data then home[want[served].at].memory := reply[p].data; end;
    reply[p].kind := Quiet; undefine reply[p].data;
    waiting[p] := false;
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
