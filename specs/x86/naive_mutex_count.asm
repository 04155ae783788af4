; A naive mutex that counts how often it was taken: the lock is tested and taken in two steps, so that several threads may pass the test before one
; has taken the lock. Unsafe under every memory model.
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
cs: dec dword [Count]
    mfence
    dec dword [Lock]
    mfence
    jmp acquire
end thread_code
