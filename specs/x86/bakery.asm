; Lamport's bakery for two threads, two critical sections each. A thread takes a ticket one above the other's, and waits for the other while
; that chooses or has a smaller ticket; of equal ones that of the first thread is smaller. Not robust: both the announcement and the ticket
; may wait in the buffer while the other's are read.
begin thread_data
    choosing dd 0
    ticket dd 0
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
    mov dword [choosing], 1
    mov eax, [ticket + $1]
    inc eax
    mov [ticket], eax
    mov dword [choosing], 0
chooses:
    cmp dword [choosing + $1], 0
    jne chooses
turn:
    mov ecx, [ticket + $1]
    cmp ecx, 0
    je cs
    cmp ecx, eax
    jl turn
cs: nop
    mov dword [ticket], 0
    dec ebx
    jne enter
end thread_code

begin thread_code
    mov ebx, 2
enter:
    mov dword [choosing], 1
    mov eax, [ticket + $0]
    inc eax
    mov [ticket], eax
    mov dword [choosing], 0
chooses:
    cmp dword [choosing + $0], 0
    jne chooses
turn:
    mov ecx, [ticket + $0]
    cmp ecx, 0
    je cs
    cmp ecx, eax
    jle turn
cs: nop
    mov dword [ticket], 0
    dec ebx
    jne enter
end thread_code
