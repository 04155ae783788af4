; The spinlock of older Linux kernels, after Sewell et al., "x86-TSO: a rigorous and usable programmer's model" (CACM 2010).
; Lock is 1 when free. Leaving is a plain store: under TSO it cannot be overtaken by what was done before.
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
    lock dec dword [Lock]
    jns cs
spin:
    cmp dword [Lock], 0
    jle spin
    jmp acquire
cs: ; critical section
    mov dword [Lock], 1
    jmp acquire
end thread_code
