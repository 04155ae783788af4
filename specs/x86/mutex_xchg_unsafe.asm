; As mutex_xchg.asm, with the exchange taken apart into a load and a store.
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
    mov ebx, [Lock]
    mov [Lock], eax
    cmp ebx, 0
    jne acquire
cs: nop
    mov dword [Lock], 0
    mfence
    jmp acquire
end thread_code
