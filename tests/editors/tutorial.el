;;; Drives `mu-check lsp' by Emacs's own client Eglot, set up by the lines of editors/README.md: a model is opened, broken, mended by the fix that is
;;; offered, Prints `ok' at the end; an error ends Emacs with its reason.

(require 'cl-lib)
(unless (require 'eglot nil t)
  (princ "skipped: this Emacs has no Eglot (Emacs 29, or Debian's package elpa-eglot)\n")
  (kill-emacs 0))

(defun wait (what test)
  "Until TEST gives something; WHAT says what for."
  (with-timeout (20 (error "Timeout: %s" what))
    (let (found)
      (while (not (setq found (funcall test)))
        (accept-process-output nil 0.02))
      found)))

(defun messages ()
  (flymake-start)
  (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))

(find-file (expand-file-name "banks.mcrl2" (getenv "MU_CHECK_FOLDER")))
(cl-assert (eq major-mode 'mcrl2-mode))
;; Eglot connects after the command that opened the file.
(run-hooks 'post-command-hook)
(wait "the server" #'eglot-current-server)
(wait "the first answer" (lambda () (and (eglot-managed-p) (null (messages)))))

(defvar good (buffer-string))
(search-forward "Bank(d)")
(replace-match "Bnak(d)")
(eglot--signal-textDocument/didChange)
(wait "an error" (lambda () (cl-some (lambda (m) (string-match-p "similar names?: Bank" m)) (messages))))
(search-backward "Bnak")
;; As from the keyboard, and whoever is asked takes the first that is offered.
(let ((last-nonmenu-event ?\r))
  (cl-letf (((symbol-function 'completing-read) (lambda (_ items &rest _) (caar items))))
    (call-interactively #'eglot-code-actions)))
(eglot--signal-textDocument/didChange)
(wait "no error" (lambda () (null (messages))))
(cl-assert (equal (buffer-string) good))
(princ "ok\n")
