; A sense-reversing barrier (Herlihy, Shavit, "The Art of Multiprocessor Programming", 2008) that each thread passes once.
; No thread is past it while another has not come to it.
begin shared_data
    sense dd 0
    count dd N ! as counter
end shared_data

begin unsafe_prop
    eip[$t1] = entr && eip[$t2] = past
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov esi, 0              ; the sense of this thread
entr:
    not esi
    lock dec dword [count]
    jne spin
    mov dword [count], N    ; the last one resets the count, then lets the others go
    mov dword [sense], esi
    jmp past
spin:
    cmp dword [sense], esi
    jne spin
past:
    nop
end thread_code
