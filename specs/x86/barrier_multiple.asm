; As barrier_single.asm, passed again and again. A thread that is past the barrier has the sense of its round; one at the entry that has
; not come to this round yet has the other sense, and must not be met then.
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
    lock dec dword [count]
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
