-- Every construct of the language once; the formatter's test lays it out.
CONST
N : 3; M: N*2 ; Limit: 0x0f & 7;
Type
Proc : Scalarset( N ) ;
  State: enum{Idle,Busy , Done};
Home: enum { Directory };
    Node : union{Home,Proc};
Message:record
kind:State;   -- what it says
from: Node
end;
Index: 0 .. M-1;
var
state :array[Proc] of State;
 net: multiset [ 4 ] of Message;
 owner : Node ;
  log : array [Index] of boolean;
   last: record a,b : Index end;

function next( s:State ) :State ;
begin
switch s
-- the first case
case Idle: return Busy;
case Busy ,Done :
if s=Busy then return Done;
elsif s = Done then return Idle
else error "never"
endif;
else
return Idle;
end;
return Idle;
end;

procedure send(n:Node;var m: Message) ;
  var copy : Message;
begin
copy:= m;
 copy.from := n ;
  if multisetcount( i : net , true)<4 then multisetadd(copy, net) end;
end;

startstate "initial"
begin
for p:Proc do
state [ p ]:=Idle;
end;
undefine net; undefine owner;
for i := 0 to M - 1 by 1 do log[i] := false ; end;
clear last;
end;

ruleset p:Proc do
rule "step"
state[p] = Idle & ! isundefined(owner)
| exists q: Proc do
state[q] = Busy & q != p
end
==>
var m:Message;
begin
m.kind := next(state[p]); undefine m.from;
send(p , m) ;
alias s : state[p] ; k: N do
s := next( s );
last.a := k + 1 ;
while last.a > 0 do last.a := last.a-1 end;
endalias;
assert "limit" last.a <= Limit;
cover log[0] "log";
put "step"; put last.a;
-- done
end;

alias mine: state[p] do
rule mine = Done ==> mine := Idle;
   owner := p; end
end;
end;

choose i:net do
rule "receive"
ismember(net[i].from, Proc)
==> begin
log[ 0 ] := ! log[0] -> true;
last.b := log[0]?1:2;
multisetremove(i, net);
multisetremovepred(j: net, net[j].kind = Done);
assume true;
endrule;
endchoose;

invariant "owner"
isundefined(owner)
| ismember(owner, Home)
| forall p: Proc do
owner = p -> state[p] != Busy
end;
liveness "idle" exists p: Proc do state[p] = Idle end;
