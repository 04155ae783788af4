-- Drives `mu-check lsp` by Neovim's own client: errors come and go, hover, definition, rename across files, formatting, and all files of a list
-- without a diagnostic. Prints `ok` at the end; a failure ends with exit code 1 and its reason.

local folder, list = vim.env.MU_CHECK_FOLDER, vim.env.MU_CHECK_LIST

local function fail(text)
  io.stdout:write("failed: " .. text .. "\n")
  vim.cmd("cquit 1")
end

local function main()
  local published = {}
  local client = vim.lsp.start_client({
    name = "mu-check",
    cmd = { vim.env.MU_CHECK, "lsp" },
    root_dir = folder,
    handlers = {
      ["textDocument/publishDiagnostics"] = function(err, result, context, config)
        published[result.uri] = result
        vim.lsp.diagnostic.on_publish_diagnostics(err, result, context, config)
      end,
    },
  })
  assert(client, "the server does not start")

  local function open(path)
    vim.cmd("edit " .. vim.fn.fnameescape(path))
    local buffer = vim.api.nvim_get_current_buf()
    vim.lsp.buf_attach_client(buffer, client)
    return buffer
  end
  local function wait(what, test)
    assert(vim.wait(10000, test, 5), "timeout: " .. what)
  end
  local function diagnostics(buffer, version)
    local uri = vim.uri_from_bufnr(buffer)
    wait("diagnostics of " .. uri, function()
      return published[uri] and (not version or (published[uri].version or -1) >= version)
    end)
    return published[uri].diagnostics
  end
  local function ask(buffer, method, params)
    params.textDocument = { uri = vim.uri_from_bufnr(buffer) }
    local answers = vim.lsp.buf_request_sync(buffer, method, params, 10000)
    assert(answers, "timeout: " .. method)
    for _, answer in pairs(answers) do
      assert(not answer.error, method .. ": " .. vim.inspect(answer.error))
      return answer.result
    end
  end
  -- The place of a word.
  local function place(buffer, word)
    for i, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
      local column = line:find(word, 1, true)
      if column then
        return { line = i - 1, character = vim.str_utfindex(line, column - 1) }
      end
    end
    error("no `" .. word .. "`")
  end

  local model = open(folder .. "/specs/a.mcrl2")
  local formula = open(folder .. "/props/a.mcf")
  assert(#diagnostics(model) == 0 and #diagnostics(formula) == 0, "errors in a model without any")

  -- Break the model while the formula stays known; mend it.
  local init = place(model, "init P").line
  vim.api.nvim_buf_set_lines(model, init, init + 1, true, { "init Pp(0);" })
  local uri = vim.uri_from_bufnr(model)
  wait("an error", function() return #published[uri].diagnostics == 1 end)
  assert(published[uri].diagnostics[1].message:find("`Pp` is"), vim.inspect(published[uri].diagnostics))
  vim.api.nvim_buf_set_lines(model, init, init + 1, true, { "init P(0);" })
  wait("no error", function() return #published[uri].diagnostics == 0 end)

  local hover = ask(formula, "textDocument/hover", { position = place(formula, "send(5)") })
  assert(hover.contents.value:find("act send: Nat", 1, true), vim.inspect(hover))
  local found = ask(formula, "textDocument/definition", { position = place(formula, "twice") })
  assert(found[1].uri == uri, vim.inspect(found))

  local edit = ask(model, "textDocument/rename", { position = place(model, "send, receive"), newName = "emit" })
  vim.lsp.util.apply_workspace_edit(edit, "utf-16")
  local text = table.concat(vim.api.nvim_buf_get_lines(formula, 0, -1, true), "\n")
  assert(text:find("emit(5)", 1, true) and not text:find("send", 1, true), text)
  place(model, "emit, receive")

  local edits = ask(formula, "textDocument/formatting", { options = { tabSize = 2, insertSpaces = true } })
  vim.lsp.util.apply_text_edits(edits, formula, "utf-16")
  assert(#ask(formula, "textDocument/formatting", { options = { tabSize = 2, insertSpaces = true } }) == 0, "formatted twice")
  ask(formula, "textDocument/documentSymbol", {})
  wait("settled", function() return #published[uri].diagnostics == 0 and #published[vim.uri_from_bufnr(formula)].diagnostics == 0 end)

  -- Texts of other front ends: what a name is, where, and another name for it, across files.
  local text_of = function(buffer) return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n") end
  for _, case in ipairs({
    { "others/a.cub", "busy(q)", "busy (x)", "predicate busy", "taken(p) && taken(q)" },
    { "others/m.cat", "step)", nil, "declared in `base.cat`", "(reach; taken)" },
    { "others/sb.litmus", "y],$1", "y=0", "int y=0", "MOV [taken],$1" },
    { "others/a.pbes", "m < n", "m: Nat. val", "m: Nat", "val(taken < n) => Y(d)" },
    { "others/a.asm", "again: mov", "again: mov", "a label", "jne taken" },
  }) do
    local name, used, declared, said, renamed = unpack(case, 1, 5)
    -- What declares it is open as well: an edit of a file that is not is on the disk only when it is written.
    if not declared then open(folder .. "/others/base.cat") end
    local buffer = open(folder .. "/" .. name)
    assert(#diagnostics(buffer) == 0, name .. ": " .. vim.inspect(diagnostics(buffer)))
    local told = ask(buffer, "textDocument/hover", { position = place(buffer, used) })
    assert(told.contents.value:find(said, 1, true), name .. ": " .. vim.inspect(told))
    local places = ask(buffer, "textDocument/definition", { position = place(buffer, used) })
    if declared then
      local here = place(buffer, declared)
      assert(places[1].range.start.line == here.line and places[1].range.start.character == here.character, name .. ": " .. vim.inspect(places))
    else
      assert(places[1].uri:find("base.cat", 1, true), name .. ": " .. vim.inspect(places))
    end
    local changes = ask(buffer, "textDocument/rename", { position = place(buffer, used), newName = "taken" })
    vim.lsp.util.apply_workspace_edit(changes, "utf-16")
    assert(text_of(buffer):find(renamed, 1, true), name .. ": " .. text_of(buffer))
    ask(buffer, "textDocument/semanticTokens/full", {})
    assert(#ask(buffer, "textDocument/documentSymbol", {}) > 1, name)
    -- The edits of two files come one after the other.
    wait("no error in " .. name .. " after renaming", function() return #published[vim.uri_from_bufnr(buffer)].diagnostics == 0 end)
    vim.cmd("write")
  end
  local changed = table.concat(vim.fn.readfile(folder .. "/others/m.cat"), "\n")
  assert(changed:find("reach; taken", 1, true), changed)

  -- Every file of the list, each without an error on the command line.
  local count = 0
  for path in io.lines(list) do
    local buffer = open(path)
    for _, diagnostic in ipairs(diagnostics(buffer)) do
      assert(diagnostic.severity == 4, path .. ": " .. diagnostic.message)
    end
    count = count + 1
    vim.cmd("bwipeout!")
  end
  vim.lsp.stop_client(client)
  wait("the end", function() return vim.lsp.client_is_stopped(client) end)
  io.stdout:write("ok " .. count .. "\n")
  vim.cmd("qall!")
end

local good, reason = pcall(main)
if not good then
  fail(tostring(reason))
end
