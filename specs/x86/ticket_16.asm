; A ticket lock with words of 16 bits, which wrap. With 2^16 threads or more two could have the same ticket.
begin shared_data
    next_ticket dw 0
    serving dw 0
end shared_data

begin unsafe_prop
    eip[$t1] = critical && eip[$t2] = critical
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire:
    mov ax, 1
    lock xadd [next_ticket], ax
wait_for_turn:
    cmp [serving], ax
    je critical
    pause
    jmp wait_for_turn
critical:
    nop
    inc word [serving]
    jmp acquire
end thread_code
