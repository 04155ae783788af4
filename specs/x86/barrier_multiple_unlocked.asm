; As barrier_multiple.asm without the lock prefix. Threads that count down from the same value wait for ever. That is no unsafe state, and
; none is met under TSO; under PSO the new sense may reach memory before the count is reset.
begin shared_data
    sense dd 0
    count dd N ! as counter
end shared_data

begin unsafe_prop
    eip[$t1] = entr && eip[$t2] = past && esi[$t1] <> esi[$t2]
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov esi, 0
entr:
    not esi
    dec dword [count]
    jne spin
    mov dword [count], N
    mov dword [sense], esi
    jmp past
spin:
    cmp dword [sense], esi
    jne spin
past:
    nop
    jmp entr
end thread_code
