; As spinlock.asm without the lock prefix: two threads decrement the same value.
begin shared_data
    Lock dd 1
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire:
    dec dword [Lock]
    jns cs
spin:
    cmp dword [Lock], 0
    jle spin
    jmp acquire
cs: ; critical section
    mov dword [Lock], 1
    jmp acquire
end thread_code
