; A queue of work between its owner and a thief, after the protocol of Frigo, Leiserson, Randall, "The implementation of the Cilk-5
; multithreaded language" (PLDI 1998): the owner pushes and takes at the tail without a lock while there is more than one item, the thief
; takes at the head under the lock. The owner pushes two items and takes twice; the thief takes twice: six operations. Not robust: the new
; tail may wait in the owner's buffer while it reads the head, and both take the same item.
begin shared_data
    head dd 0
    tail dd 0
    lock_word dd 0
    taken0 dd 0
    taken1 dd 0
end shared_data

begin unsafe_prop
    taken0 > 1
end unsafe_prop

begin unsafe_prop
    taken1 > 1
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
    mov dword [tail], 1
    mov dword [tail], 2
    mov ebx, 2
take:
    mov eax, [tail]
    dec eax
    mov [tail], eax
    mov ecx, [head]
    cmp ecx, eax
    jle got
    ; Perhaps the last item: restore, and try again with the lock.
    inc eax
    mov [tail], eax
acquire:
    mov edx, 1
    xchg edx, [lock_word]
    cmp edx, 0
    jne acquire
    mov eax, [tail]
    dec eax
    mov [tail], eax
    mov ecx, [head]
    cmp ecx, eax
    jle got_locked
    inc eax
    mov [tail], eax
    mov dword [lock_word], 0
    jmp next
got_locked:
    mov dword [lock_word], 0
got:
    cmp eax, 0
    jne second
    lock inc dword [taken0]
    jmp next
second:
    lock inc dword [taken1]
next:
    dec ebx
    jne take
end thread_code

begin thread_code
    mov ebx, 2
steal:
    mov edx, 1
    xchg edx, [lock_word]
    cmp edx, 0
    jne steal
    mov eax, [head]
    inc eax
    mov [head], eax
    mov ecx, [tail]
    cmp eax, ecx
    jle got
    dec eax
    mov [head], eax
    mov dword [lock_word], 0
    jmp next
got:
    mov dword [lock_word], 0
    cmp eax, 1
    jne second
    lock inc dword [taken0]
    jmp next
second:
    lock inc dword [taken1]
next:
    dec ebx
    jne steal
end thread_code
