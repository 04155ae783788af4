; Dekker's mutual exclusion for two threads, two critical sections each. Without fences between setting the own flag and reading the other's
; it is not robust: both threads may enter. A thread is done after its second section.
begin shared_data
    turn dd 0
end shared_data

begin thread_data
    flag dd 0
end thread_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov ebx, 2
enter:
    mov dword [flag], 1
test:
    cmp dword [flag + $1], 0
    je cs
    cmp dword [turn], 0
    je test
    mov dword [flag], 0
wait:
    cmp dword [turn], 0
    jne wait
    jmp enter
cs: nop
    mov dword [turn], 1
    mov dword [flag], 0
    dec ebx
    jne enter
end thread_code

begin thread_code
    mov ebx, 2
enter:
    mov dword [flag], 1
test:
    cmp dword [flag + $0], 0
    je cs
    cmp dword [turn], 1
    je test
    mov dword [flag], 0
wait:
    cmp dword [turn], 1
    jne wait
    jmp enter
cs: nop
    mov dword [turn], 0
    mov dword [flag], 0
    dec ebx
    jne enter
end thread_code
