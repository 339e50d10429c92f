if vim.g.loaded_lore then return end
vim.g.loaded_lore = true
require('lore').commands()
