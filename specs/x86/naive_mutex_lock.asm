; As naive_mutex.asm with locked instructions. Each is atomic now, but not the test together with what follows it: unsafe as well.
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
    cmp dword [Lock], 0
    jne acquire
    lock inc dword [Lock]
cs: nop
    lock dec dword [Lock]
    jmp acquire
end thread_code
