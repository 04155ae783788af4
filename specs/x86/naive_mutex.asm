; A mutex that tests the lock and takes it in two steps: several threads may pass the test before one has taken the lock.
; Unsafe under every memory model.
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
    inc dword [Lock]
cs: nop
    dec dword [Lock]
    mfence
    jmp acquire
end thread_code
