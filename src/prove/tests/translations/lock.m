const N: 2; VALUES: 2;
type S: scalarset(N); V: 0..VALUES - 1; P: enum {Idle, Wait, In};
var at: array [S] of P; box: array [S] of record full: boolean; data: V; from: S; end;
    owner: S; next: S; memory: V; seen: array [S] of array [S] of boolean; busy: boolean;
function idle(p: P): boolean; begin return p = Idle; end;
procedure store(var place: V; v: V); begin place := v; end;
ruleset v: V do startstate begin
  for n: S do at[n] := Idle; box[n].full := false; undefine box[n].data; undefine box[n].from;
    for m: S do seen[n][m] := false; end; end;
  undefine owner; undefine next; memory := v; busy := false;
end; end;
ruleset n: S do
  rule "ask" idle(at[n]) & isundefined(next) ==> begin at[n] := Wait; next := n; end;
  rule "enter" at[n] = Wait & !busy & next = n & forall m: S do at[m] != In end ==>
  begin at[n] := In; owner := n; undefine next; busy := true; end;
  rule "leave" at[n] = In ==>
  begin
    assert owner = n;
    at[n] := Idle; undefine owner; busy := false;
    for m: S do if m != n & !box[m].full then seen[n][m] := true; end; end;
  end;
  ruleset v: V do
    rule "write" at[n] = In ==> begin store(memory, v); end;
    ruleset m: S do
      rule "send" at[n] = In & n != m & !box[m].full ==>
      begin
        alias b: box[m] do b.full := true; b.data := v; b.from := n; end;
        seen[m][n] := false;
      end;
    end;
  end;
  rule "take" box[n].full ==>
  var v: V;
  begin
    v := box[n].data;
    if box[n].from = n then error "from itself"; end;
    if at[n] = In then memory := v; end;
    clear box[n].full; undefine box[n].data; undefine box[n].from;
  end;
end;
invariant "one" forall n: S do forall m: S do at[n] = In & at[m] = In -> n = m end end;
invariant "owner" busy -> at[owner] = In;
invariant "next" isundefined(next) | at[next] = Wait;
