//! Small functional programs in the manner of the Rewrite Engines Competition: for each, equations,
//! an expression at full size with its normal form, and a small one with its. The results are those
//! of the same algorithms run elsewhere, or known numbers.

/// A program. The benchmark runs it at full size, the test at small size.
#[allow(dead_code)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Sorts, mappings and equations.
    pub declarations: &'static str,
    /// An expression with a long evaluation, and its normal form.
    pub full: (&'static str, &'static str),
    /// An expression with a short evaluation, and its normal form.
    pub quick: (&'static str, &'static str),
}

/// A list of pseudo-random numbers, and a number that depends on all elements of a list and their
/// order.
macro_rules! lists {
    ($text:literal) => {
        concat!(
            "map random: Nat # Nat -> List(Nat); weigh: Nat # Nat # List(Nat) -> Nat;
             var n, m, w, seed: Nat; l: List(Nat);
             eqn random(0, seed) = [];
                 n > 0 -> random(n, seed) = (seed mod 65536) |> random(Int2Nat(n - 1), (seed * 1103515245 + 12345) mod 2147483648);
                 weigh(n, w, []) = w; weigh(n, w, m |> l) = weigh(n + 1, (w + n * m) mod 1000003, l);\n",
            $text
        )
    };
}

/// Expressions over numbers modulo 17, which are terms built by successor, and their value `ev`
/// without powers.
macro_rules! arithmetic {
    () => {
        "sort N = struct zero | s(N); E = struct num(N) | plus(E, E) | times(E, E) | power(E, E);
         map ev: E -> N; add, mul: N # N -> N; reduce: N -> N; n: Nat -> N; value: N -> Nat;
         var i: Nat; x, y: N; a, b, c: E;
         eqn n(0) = zero; i > 0 -> n(i) = s(n(Int2Nat(i - 1))); value(zero) = 0; value(s(x)) = 1 + value(x);
             add(zero, y) = y; add(s(x), y) = s(add(x, y)); mul(zero, y) = zero; mul(s(x), y) = add(y, mul(x, y));
             reduce(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(x)))))))))))))))))) = reduce(x);
             value(x) < 17 -> reduce(x) = x;
             ev(num(x)) = reduce(x); ev(plus(a, b)) = reduce(add(ev(a), ev(b))); ev(times(a, b)) = reduce(mul(ev(a), ev(b)));
         var x, y: N; a, b, c: E;"
    };
}

/// All programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "fib",
        declarations: "map fib: Nat -> Nat; var n: Nat; eqn fib(n) = if(n < 2, n, fib(Int2Nat(n - 1)) + fib(Int2Nat(n - 2)));",
        full: ("fib(27)", "196418"),
        quick: ("fib(10)", "55"),
    },
    Program {
        name: "peano_fib",
        declarations: "sort N = struct zero | s(N);
             map plus: N # N -> N; fib: N -> N; value: N -> Nat; number: Nat -> N; var x, y: N; n: Nat;
             eqn plus(zero, y) = y; plus(s(x), y) = s(plus(x, y));
                 fib(zero) = zero; fib(s(zero)) = s(zero); fib(s(s(x))) = plus(fib(x), fib(s(x)));
                 value(zero) = 0; value(s(x)) = 1 + value(x);
                 number(0) = zero; n > 0 -> number(n) = s(number(Int2Nat(n - 1)));",
        full: ("value(fib(number(22)))", "17711"),
        quick: ("value(fib(number(10)))", "55"),
    },
    Program {
        name: "bubblesort",
        declarations: lists!(
            "map bubble: List(Nat) -> List(Nat); passes: Nat # List(Nat) -> List(Nat);
             var k, n, m: Nat; l: List(Nat);
             eqn bubble([]) = []; bubble([n]) = [n];
                 n <= m -> bubble(n |> m |> l) = n |> bubble(m |> l); n > m -> bubble(n |> m |> l) = m |> bubble(n |> l);
                 passes(0, l) = l; k > 0 -> passes(k, l) = passes(Int2Nat(k - 1), bubble(l));"
        ),
        full: ("weigh(1, 0, passes(1500, random(1500, 1)))", "17343"),
        quick: ("weigh(1, 0, passes(40, random(40, 1)))", "295140"),
    },
    Program {
        name: "mergesort",
        declarations: lists!(
            "map sort_: List(Nat) -> List(Nat); merge, split: List(Nat) # List(Nat) # List(Nat) -> List(Nat); merge: List(Nat) # List(Nat) -> List(Nat);
             var n, m: Nat; k, l, r: List(Nat);
             eqn sort_([]) = []; sort_([n]) = [n]; sort_(n |> m |> l) = split(l, [n], [m]);
                 split([], k, r) = merge(sort_(k), sort_(r)); split(n |> l, k, r) = split(l, r, n |> k);
                 merge([], l) = l; merge(l, []) = l;
                 n <= m -> merge(n |> k, m |> l) = n |> merge(k, m |> l); n > m -> merge(n |> k, m |> l) = m |> merge(n |> k, l);"
        ),
        full: ("weigh(1, 0, sort_(random(20000, 1)))", "972436"),
        quick: ("weigh(1, 0, sort_(random(60, 1)))", "815169"),
    },
    Program {
        name: "quicksort",
        declarations: lists!(
            "map smaller, larger: Nat # List(Nat) -> List(Nat); qs: List(Nat) -> List(Nat);
             var n, m: Nat; l: List(Nat);
             eqn smaller(n, []) = []; m < n -> smaller(n, m |> l) = m |> smaller(n, l); m >= n -> smaller(n, m |> l) = smaller(n, l);
                 larger(n, []) = []; m >= n -> larger(n, m |> l) = m |> larger(n, l); m < n -> larger(n, m |> l) = larger(n, l);
                 qs([]) = []; qs(n |> l) = qs(smaller(n, l)) ++ (n |> qs(larger(n, l)));"
        ),
        full: ("weigh(1, 0, qs(random(20000, 1)))", "972436"),
        quick: ("weigh(1, 0, qs(random(60, 1)))", "815169"),
    },
    Program {
        name: "sieve",
        declarations: "map upto: Nat # Nat -> List(Nat); drop: Pos # List(Nat) -> List(Nat); sieve: List(Nat) -> List(Nat);
             var n, m: Nat; p: Pos; l: List(Nat);
             eqn n > m -> upto(n, m) = []; n <= m -> upto(n, m) = n |> upto(n + 1, m);
                 drop(p, []) = []; drop(p, n |> l) = if(n mod p == 0, drop(p, l), n |> drop(p, l));
                 sieve([]) = []; sieve(p |> l) = p |> sieve(drop(p, l));",
        full: ("#sieve(upto(2, 12000))", "1438"),
        quick: ("#sieve(upto(2, 200))", "46"),
    },
    Program {
        name: "tak",
        declarations: "map tak: Int # Int # Int -> Int; var x, y, z: Int;
             eqn x <= y -> tak(x, y, z) = z;
                 x > y -> tak(x, y, z) = tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));",
        full: ("tak(18, 12, 6)", "7"),
        quick: ("tak(9, 6, 3)", "6"),
    },
    Program {
        name: "hanoi",
        declarations: "sort Peg = struct left | middle | right; Move = struct move(Peg, Peg);
             map hanoi: Nat # Peg # Peg # Peg -> List(Move); run: List(Move) # (Peg -> List(Nat)) -> (Peg -> List(Nat));
                 start: Nat -> (Peg -> List(Nat)); stack: Nat # List(Nat) -> List(Nat);
             var n: Nat; p, q, r: Peg; l: List(Move); f: Peg -> List(Nat); d: List(Nat);
             eqn hanoi(0, p, q, r) = [];
                 n > 0 -> hanoi(n, p, q, r) = hanoi(Int2Nat(n - 1), p, r, q) ++ (move(p, r) |> hanoi(Int2Nat(n - 1), q, p, r));
                 run([], f) = f;
                 f(q) == [] || head(f(p)) < head(f(q)) -> run(move(p, q) |> l, f) = run(l, f[q -> head(f(p)) |> f(q)][p -> tail(f(p))]);
                 stack(0, d) = d; n > 0 -> stack(n, d) = stack(Int2Nat(n - 1), n |> d);
                 start(n) = (lambda p: Peg. [])[left -> stack(n, [])];",
        full: ("run(hanoi(14, left, middle, right), start(14))(right)", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]"),
        quick: ("run(hanoi(4, left, middle, right), start(4))(right)", "[1, 2, 3, 4]"),
    },
    Program {
        name: "binary_trees",
        declarations: "sort T = struct leaf | node(left: T, key: Nat, right: T)?is_node;
             map insert: Nat # T -> T; build: Nat # Nat # T -> T; size: T -> Nat; var n, m, x: Nat; l, r, t: T;
             eqn insert(n, leaf) = node(leaf, n, leaf);
                 n < m -> insert(n, node(l, m, r)) = node(insert(n, l), m, r);
                 n > m -> insert(n, node(l, m, r)) = node(l, m, insert(n, r));
                 insert(n, node(l, n, r)) = node(l, n, r);
                 build(0, x, t) = t; n > 0 -> build(n, x, t) = build(Int2Nat(n - 1), (x * 1103 + 12345) mod 65536, insert(x, t));
                 size(leaf) = 0; is_node(t) -> size(t) = 1 + size(left(t)) + size(right(t));",
        full: ("size(build(60000, 1, leaf))", "8192"),
        quick: ("size(build(200, 1, leaf))", "200"),
    },
    Program {
        name: "sets",
        declarations: "map fill: Nat # Nat # FSet(Nat) -> FSet(Nat); var n, x: Nat; s: FSet(Nat);
             eqn fill(0, x, s) = s; n > 0 -> fill(n, x, s) = fill(Int2Nat(n - 1), (x * 7 + 3) mod 1009, s + {x});",
        full: ("#fill(100000, 1, {})", "252"),
        quick: ("#fill(100, 1, {})", "100"),
    },
    Program {
        name: "garbage_collection",
        declarations: "sort Heap = Nat -> List(Nat);
             map cells: Nat # Nat # Heap -> Heap; mark: List(Nat) # Heap # FSet(Nat) -> FSet(Nat);
                 sweep: Nat # FSet(Nat) # Heap -> Heap; live: Nat # Heap -> Nat;
             var n, i: Nat; h: Heap; seen: FSet(Nat); l: List(Nat);
             eqn cells(n, 0, h) = h;
                 i > 0 -> cells(n, i, h) = cells(n, Int2Nat(i - 1), if(k mod 3 == 0, h, h[k -> [(k * 7 + 3) mod Nat2Pos(n), (k * k + 1) mod Nat2Pos(n)]]))
                     whr k = Int2Nat(i - 1) end;
                 mark([], h, seen) = seen;
                 i in seen -> mark(i |> l, h, seen) = mark(l, h, seen);
                 !(i in seen) -> mark(i |> l, h, seen) = mark(h(i) ++ l, h, seen + {i});
                 sweep(0, seen, h) = h;
                 i > 0 -> sweep(i, seen, h) = sweep(Int2Nat(i - 1), seen, if(k in seen, h[k -> 1 |> h(k)], h[k -> []])) whr k = Int2Nat(i - 1) end;
                 live(0, h) = 0;
                 i > 0 -> live(i, h) = live(Int2Nat(i - 1), h) + if(h(Int2Nat(i - 1)) == [], 0, 1);",
        full: ("live(3000, sweep(3000, mark([1], h, {}), h) whr h = cells(3000, 3000, lambda x: Nat. []) end)", "360"),
        quick: ("live(50, sweep(50, mark([1], h, {}), h) whr h = cells(50, 50, lambda x: Nat. []) end)", "28"),
    },
    Program {
        name: "revnat",
        declarations: "sort N = struct zero | s(N); L = struct nil | cons_(N, L);
             map generate: Nat -> L; number: Nat -> N; append: L # L -> L; reverse: L -> L; first: L -> N; value: N -> Nat;
             var n: Nat; x, y: N; k, l: L;
             eqn number(0) = zero; n > 0 -> number(n) = s(number(Int2Nat(n - 1)));
                 generate(0) = nil; n > 0 -> generate(n) = cons_(number(n), generate(Int2Nat(n - 1)));
                 append(nil, l) = l; append(cons_(x, k), l) = cons_(x, append(k, l));
                 reverse(nil) = nil; reverse(cons_(x, l)) = append(reverse(l), cons_(x, nil));
                 first(cons_(x, l)) = x; value(zero) = 0; value(s(x)) = 1 + value(x);",
        full: ("value(first(reverse(reverse(generate(700)))))", "700"),
        quick: ("value(first(reverse(reverse(generate(12)))))", "12"),
    },
    Program {
        name: "evalsym",
        declarations: concat!(arithmetic!(), "
             eqn ev(power(a, num(zero))) = s(zero); ev(power(a, num(s(x)))) = ev(times(a, power(a, num(x))));
                 ev(power(a, plus(b, c))) = ev(times(power(a, b), power(a, c)));
                 ev(power(a, times(b, c))) = ev(power(power(a, b), c));
                 ev(power(a, power(b, num(zero)))) = ev(a);
                 ev(power(a, power(b, num(s(x))))) = ev(power(power(a, power(b, num(x))), b));"),
        full: ("value(ev(power(num(n(3)), times(num(n(120)), plus(num(n(70)), num(n(81)))))))", "16"),
        quick: ("value(ev(power(num(n(2)), times(num(n(5)), plus(num(n(3)), num(n(4)))))))", "8"),
    },
    Program {
        name: "evalexp",
        declarations: concat!("map expand: E -> E;\n",
            arithmetic!(), "
             eqn expand(num(x)) = num(x); expand(plus(a, b)) = plus(expand(a), expand(b)); expand(times(a, b)) = times(expand(a), expand(b));
                 expand(power(a, num(zero))) = num(s(zero)); expand(power(a, num(s(x)))) = times(expand(a), expand(power(a, num(x))));
                 expand(power(a, plus(b, c))) = times(expand(power(a, b)), expand(power(a, c)));
                 expand(power(a, times(b, c))) = expand(power(power(a, b), c));"),
        full: ("value(ev(expand(power(num(n(3)), times(num(n(60)), plus(num(n(45)), num(n(56))))))))", "4"),
        quick: ("value(ev(expand(power(num(n(2)), times(num(n(5)), plus(num(n(3)), num(n(4))))))))", "8"),
    },
    Program {
        name: "langton",
        declarations: "sort Cell = struct at(x: Int, y: Int);
             map walk: Nat # Int # Int # Int # Int # FSet(Cell) -> FSet(Cell);
             var n: Nat; i, j, u, v: Int; black: FSet(Cell);
             eqn walk(0, i, j, u, v, black) = black;
                 n > 0 && at(i, j) in black -> walk(n, i, j, u, v, black) = walk(Int2Nat(n - 1), i - v, j + u, -v, u, black - {at(i, j)});
                 n > 0 && !(at(i, j) in black) -> walk(n, i, j, u, v, black) = walk(Int2Nat(n - 1), i + v, j - u, v, -u, black + {at(i, j)});",
        full: ("#walk(11000, 0, 0, 0, 1, {})", "834"),
        quick: ("#walk(100, 0, 0, 0, 1, {})", "20"),
    },
    Program {
        name: "queens",
        declarations: "map queens: Nat # List(Nat) # Nat -> Nat; safe: Nat # Nat # List(Nat) -> Bool; try: Nat # Nat # List(Nat) # Nat -> Nat;
             var n, k, c, q, d: Nat; l: List(Nat);
             eqn safe(c, d, []) = true;
                 safe(c, d, q |> l) = c != q && c + d != q && q + d != c && safe(c, d + 1, l);
                 queens(0, l, n) = 1; k > 0 -> queens(k, l, n) = try(n, k, l, n);
                 try(0, k, l, n) = 0;
                 c > 0 -> try(c, k, l, n) = if(safe(c, 1, l), queens(Int2Nat(k - 1), c |> l, n), 0) + try(Int2Nat(c - 1), k, l, n);",
        full: ("queens(8, [], 8)", "92"),
        quick: ("queens(5, [], 5)", "10"),
    },
];
