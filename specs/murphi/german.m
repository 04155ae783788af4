-- German's protocol: caches with a directory (S. German; Pnueli, Ruah, Zuck: Automatic deductive
-- verification with invisible invariants, TACAS 2001), with data.
--
-- A client requests a shared or exclusive copy. The home grants one request after the other, after
-- it invalidated the copies that are in the way. Each client has three channels with one message:
-- its request, a message from the home, and its answer to an invalidation.

const
  NODES: 3;
  VALUES: 2;

type
  Node: scalarset(NODES);
  Value: scalarset(VALUES);
  State: enum {Invalid, Shared, Exclusive};
  Request: enum {NoRequest, AskShared, AskExclusive};
  Order: enum {NoOrder, Invalidate, GrantShared, GrantExclusive};

var
  state: array [Node] of State;
  data: array [Node] of Value;                             -- undefined without a copy
  request: array [Node] of Request;
  order: array [Node] of record kind: Order; data: Value; end;
  answer: array [Node] of record sent: boolean; data: Value; end;

  sharers: array [Node] of boolean;                        -- clients that may have a copy
  targets: array [Node] of boolean;                        -- clients that are to be invalidated
  exclusive: boolean;                                      -- some client has an exclusive copy
  command: Request;
  client: Node;                                            -- undefined while there is no command
  memory: Value;
  latest: Value;                                           -- what was stored last; for the claims

ruleset v: Value do
  startstate
    for n: Node do
      state[n] := Invalid; request[n] := NoRequest;
      order[n].kind := NoOrder; answer[n].sent := false;
      sharers[n] := false; targets[n] := false;
    end;
    exclusive := false; command := NoRequest;
    memory := v; latest := v;
  end;
end;

ruleset n: Node do
  ruleset v: Value do
    rule "store" state[n] = Exclusive ==> begin data[n] := v; latest := v; end;
  end;

  rule "ask shared" state[n] = Invalid & request[n] = NoRequest ==> begin
    request[n] := AskShared;
  end;
  rule "ask exclusive" state[n] != Exclusive & request[n] = NoRequest ==> begin
    request[n] := AskExclusive;
  end;

  rule "begin command" command = NoRequest & request[n] != NoRequest ==> begin
    command := request[n]; request[n] := NoRequest; client := n;
    for m: Node do targets[m] := sharers[m]; end;
  end;

  rule "invalidate"
    order[n].kind = NoOrder & targets[n]
    & (command = AskExclusive | command = AskShared & exclusive) ==>
  begin
    order[n].kind := Invalidate; targets[n] := false;
  end;
  rule "obey" order[n].kind = Invalidate & !answer[n].sent ==> begin
    order[n].kind := NoOrder;
    answer[n].sent := true;
    if state[n] = Exclusive then answer[n].data := data[n]; end;
    state[n] := Invalid; undefine data[n];
  end;
  rule "take answer" answer[n].sent & command != NoRequest ==> begin
    answer[n].sent := false; sharers[n] := false;
    if exclusive then exclusive := false; memory := answer[n].data; end;
    undefine answer[n].data;
  end;

  rule "grant shared"
    command = AskShared & client = n & !exclusive & order[n].kind = NoOrder ==>
  begin
    sharers[n] := true; command := NoRequest; undefine client;
    order[n].kind := GrantShared; order[n].data := memory;
  end;
  rule "grant exclusive"
    command = AskExclusive & client = n & !exclusive & order[n].kind = NoOrder
    & forall m: Node do !sharers[m] end ==>
  begin
    sharers[n] := true; exclusive := true; command := NoRequest; undefine client;
    order[n].kind := GrantExclusive; order[n].data := memory;
  end;

  rule "receive shared" order[n].kind = GrantShared ==> begin
    state[n] := Shared; data[n] := order[n].data;
    order[n].kind := NoOrder; undefine order[n].data;
  end;
  rule "receive exclusive" order[n].kind = GrantExclusive ==> begin
    state[n] := Exclusive; data[n] := order[n].data;
    order[n].kind := NoOrder; undefine order[n].data;
  end;
end;

invariant "one writer or many readers"
  forall n: Node do forall m: Node do
    n = m | state[n] != Exclusive | state[m] = Invalid
  end end;
invariant "memory has the latest value" exclusive | memory = latest;
invariant "copies have the latest value"
  forall n: Node do state[n] = Invalid | data[n] = latest end;

cover "a value is written back" exists n: Node do answer[n].sent & !isundefined(answer[n].data) end;
