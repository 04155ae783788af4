; A ticket lock with words of 32 bits, which wrap. With 2^32 threads or more two could have the same ticket.
begin shared_data
    next_ticket dd 0
    serving dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = critical && eip[$t2] = critical
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire:
    mov eax, 1
    lock xadd [next_ticket], eax
wait_for_turn:
    cmp [serving], eax
    je critical
    pause
    jmp wait_for_turn
critical:
    nop
    inc dword [serving]
    jmp acquire
end thread_code
