; A mutex whose lock is taken by an exchange, which is atomic without a prefix.
begin shared_data
    Lock dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire:
    mov eax, 1
    xchg eax, [Lock]
    cmp eax, 0
    jne acquire
cs: nop
    mov dword [Lock], 0
    jmp acquire
end thread_code
