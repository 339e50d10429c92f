-- A small client of the memory daemon: recall picker, remember selection, sessions of this file.
-- Speaks MessagePack-RPC with what Neovim has built in; nothing else is needed.

local M = {}

local config = {
  command = 'lore', -- started once when no daemon answers (any call starts it, `lore ping` does not)
  limit = 20,
}

local channel = 0

--- Where the daemon listens: the environment, else the pointer file that it writes at start.
local function socket_path()
  if vim.env.LORE_SOCKET then return vim.env.LORE_SOCKET end
  local state
  if vim.env.LORE_HOME then
    state = vim.env.LORE_HOME .. '/state'
  else
    state = (vim.env.XDG_STATE_HOME or (vim.env.HOME .. '/.local/state')) .. '/lore'
  end
  local file = io.open(state .. '/socket.path', 'r')
  if not file then return nil end
  local path = file:read('*l')
  file:close()
  return path
end

local function connect()
  local path = socket_path()
  if not path then return 0 end
  local ok, id = pcall(vim.fn.sockconnect, 'pipe', path, { rpc = true })
  if not ok or id == 0 then return 0 end
  -- Neovim needs answers in the order of its requests.
  local greeted = pcall(vim.rpcrequest, id, 'hello', {
    client = 'nvim', version = tostring(vim.version()), protocol = { 1, 1 },
    ordered = true, workspace = vim.fn.getcwd(),
  })
  if not greeted then
    pcall(vim.fn.chanclose, id)
    return 0
  end
  return id
end

--- Call a method of the daemon with a table of parameters; returns its result or raises.
--- A dead channel is opened again once, and the daemon is started once.
function M.call(method, params)
  params = params or vim.empty_dict()
  if next(params) == nil then params = vim.empty_dict() end
  if channel ~= 0 then
    local ok, result = pcall(vim.rpcrequest, channel, method, params)
    if ok then return result end
    if not tostring(result):match('[Ii]nvalid channel') and not tostring(result):match('channel was closed') then
      error(result, 0)
    end
  end
  channel = connect()
  if channel == 0 then
    vim.fn.system({ config.command, 'call', 'ping' })
    channel = connect()
  end
  if channel == 0 then
    error('lore: no daemon answers; run `lore up` and `lore status`', 0)
  end
  return vim.rpcrequest(channel, method, params)
end

local function flat(text) return (text:gsub('%s+', ' ')) end

--- Facts and sessions for a query as a list of { label, fact | session }.
function M.recall(query)
  local found = M.call('recall', { query = query, workspace = vim.fn.getcwd(), limit = config.limit })
  local items = {}
  for _, fact in ipairs(found.facts or {}) do
    table.insert(items, { label = ('%s  %s'):format(fact.id, flat(fact.text)), fact = fact })
  end
  for _, hit in ipairs(found.sessions or {}) do
    local session = hit.session
    local line = session.summary and session.summary.line or session.title or session.id
    table.insert(items, { label = ('%s  %s'):format(session.agent, flat(line)), session = session })
  end
  return items
end

local function show(lines)
  vim.cmd('new')
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.modifiable = false
end

local function open(item)
  if not item then return end
  if item.fact then
    local lines = { item.fact.id .. '  ' .. item.fact.scope, '' }
    vim.list_extend(lines, vim.split(item.fact.text, '\n'))
    show(lines)
    return
  end
  local session = M.call('session', { id = item.session.id }).session
  local lines = vim.split((session.summary and session.summary.text) or session.id, '\n')
  local page = M.call('session_messages', { id = session.id, limit = 200 })
  for _, message in ipairs(page.messages or {}) do
    table.insert(lines, '')
    table.insert(lines, '## ' .. message.role .. (message.at and ('  ' .. message.at) or ''))
    vim.list_extend(lines, vim.split(message.text, '\n'))
  end
  show(lines)
end

--- Pick among the facts and sessions that match `query`.
function M.pick(query)
  local items = M.recall(query)
  if #items == 0 then
    vim.notify('lore: nothing found for ' .. query)
    return
  end
  vim.ui.select(items, {
    prompt = 'lore: ' .. query,
    format_item = function(item) return item.label end,
  }, open)
end

--- State the given text as a fact of this workspace, with the file as its origin.
function M.remember(text)
  local params = { text = text, source = 'user', workspace = vim.fn.getcwd() }
  local name = vim.fn.expand('%:p')
  if name ~= '' and vim.fn.filereadable(name) == 1 then params.source_ref = 'file:' .. name end
  local answer = M.call('remember_fact', params)
  local note = ('lore: remembered %s'):format(answer.fact.id)
  if answer.collision_count and answer.collision_count > 0 then
    note = note .. (', %d collision(s): lore fact %s'):format(answer.collision_count, answer.fact.id)
  end
  vim.notify(note)
  return answer
end

--- Sessions that touched the file of the current buffer.
function M.sessions_of_file()
  local found = M.call('sessions', {
    file = vim.fn.expand('%:p'), workspace = vim.fn.getcwd(), limit = config.limit,
  })
  local items = {}
  for _, session in ipairs(found.sessions or {}) do
    local line = session.summary and session.summary.line or session.title or session.id
    table.insert(items, { label = ('%s  %s'):format(session.agent, flat(line)), session = session })
  end
  return items
end

function M.setup(options)
  config = vim.tbl_extend('force', config, options or {})
end

function M.commands()
  local command = vim.api.nvim_create_user_command
  command('LoreRecall', function(input) M.pick(input.args) end, { nargs = '+', desc = 'Recall' })
  command('LoreRemember', function(input)
    local text = input.args
    if text == '' then
      text = table.concat(vim.api.nvim_buf_get_lines(0, input.line1 - 1, input.line2, false), '\n')
    end
    M.remember(text)
  end, { nargs = '*', range = true, desc = 'State a fact' })
  command('LoreSessions', function()
    local items = M.sessions_of_file()
    if #items == 0 then
      vim.notify('lore: no session touched this file')
      return
    end
    vim.ui.select(items, {
      prompt = 'Sessions of this file',
      format_item = function(item) return item.label end,
    }, open)
  end, { desc = 'Sessions that touched this file' })
end

return M
