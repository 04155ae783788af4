; As naive_mutex_count.asm, left with locked instructions: unsafe as well, since it is entered as before.
begin shared_data
    Lock dd 0
    Count dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire:
    cmp dword [Lock], 0
    jne acquire
    inc dword [Lock]
    inc dword [Count]
cs: lock dec dword [Count]
    lock dec dword [Lock]
    mfence
    jmp acquire
end thread_code
