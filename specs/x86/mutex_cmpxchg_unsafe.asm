; As mutex_cmpxchg.asm without the lock prefix: the compare and the exchange are two accesses.
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
    mov ecx, 1
acquire:
    mov eax, 0
    cmpxchg dword [Lock], ecx
    jne acquire
cs: nop
    mov dword [Lock], 0
    mfence
    jmp acquire
end thread_code
