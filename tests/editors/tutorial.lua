-- Drives Neovim as editors/README.md sets it up, and no further: the tutorial's model is opened, broken, mended by the fix that is offered, and checked
-- by the command above its formula. Prints `ok` at the end; a failure ends with exit code 1 and its reason.

local folder = vim.env.MU_CHECK_FOLDER

local function wait(what, test)
  assert(vim.wait(20000, test, 20), "timeout: " .. what)
end

local function open(name)
  vim.cmd("edit " .. vim.fn.fnameescape(folder .. "/" .. name))
  local buffer = vim.api.nvim_get_current_buf()
  wait("the server of " .. name, function()
    local _, client = next(vim.lsp.buf_get_clients(buffer))
    return client and client.initialized
  end)
  return buffer
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n")
end

local function main()
  vim.cmd("cd " .. vim.fn.fnameescape(folder))
  local model = open("banks.mcrl2")
  local good = text(model)
  local broken = good:gsub("Bank%(d%)", "Bnak(d)")
  assert(good ~= broken)
  vim.api.nvim_buf_set_lines(model, 0, -1, true, vim.split(broken, "\n"))
  wait("an error", function() return #vim.diagnostic.get(model) == 1 end)
  local found = vim.diagnostic.get(model)[1]
  assert(found.lnum == 1 and found.message:find("similar names: Bank", 1, true), found.message)

  -- What is typed leaves the cursor at the end of the line. One fix is offered, and whoever is asked takes it.
  vim.api.nvim_win_set_cursor(0, { 2, 70 })
  vim.ui.select = function(items, _, choice) choice(items[1], 1) end
  vim.lsp.buf.code_action()
  wait("the fix", function() return text(model) == good end)
  wait("no error", function() return #vim.diagnostic.get(model) == 0 end)

  local formula = open("order.mcf")
  vim.lsp.codelens.refresh()
  local lens
  wait("the commands above the formula", function()
    for _, shown in ipairs(vim.lsp.codelens.get(formula)) do
      if shown.command and shown.command.arguments[1].arguments[1] == "check" then
        lens = lens or shown
      end
    end
    return lens
  end)
  vim.cmd("write | wall")
  vim.lsp.commands[lens.command.command](lens.command)
  local terminal = vim.api.nvim_get_current_buf()
  wait("the verdict", function() return text(terminal):find("order.mcf: false", 1, true) end)
  io.stdout:write("ok\n")
  vim.cmd("qall!")
end

local good, reason = pcall(main)
if not good then
  io.stdout:write("failed: " .. tostring(reason) .. "\n")
  vim.cmd("cquit 1")
end
