-- Man pages and shell completion, made from what the binary says about itself: luajit manual.lua LANEGATE VERSION FOLDER.
--
-- One page a verb, with its --help as it stands, so that the two can't tell different stories; and completions of verbs, of
-- what a verb's usage lines name after it, and of the options its help lists.
local binary, version, folder = arg[1], arg[2], arg[3]
assert(folder, "usage: luajit manual.lua LANEGATE VERSION FOLDER")

local function quoted(text)
  return "'" .. text:gsub("'", [['\'']]) .. "'"
end

local function help_of(verb)
  local pipe = assert(io.popen(quoted(binary) .. " " .. (verb or "") .. " --help"))
  local text = pipe:read "*a"
  pipe:close()
  assert(text ~= "", "no help from " .. binary .. " " .. (verb or ""))
  return text
end

local function write(path, text)
  local file = assert(io.open(folder .. "/" .. path, "w"))
  assert(file:write(text))
  file:close()
end

-- { {name, summary, help, words, options}, ... } in the order of `lanegate --help`.
local function verbs_of(overview)
  local verbs = {}
  for name, summary in overview:gmatch "\n  ([%l-]+) +([^\n]+)" do
    local verb = { name = name, summary = summary, help = help_of(name), words = {}, options = { "--help" } }
    local seen = { ["--help"] = true }
    local function add(list, word)
      if not seen[word] then list[#list + 1] = word end
      seen[word] = true
    end
    local usage = verb.help:match "^(.-)\n\n" or verb.help
    for words in usage:gmatch("lanegate " .. name:gsub("%-", "%%-") .. " %[?(%l[%l|-]*)") do
      for word in words:gmatch "%l[%l-]+" do
        if word ~= "options" then add(verb.words, word) end
      end
    end
    for option in verb.help:gmatch "%f[%-]%-%-%l[%l-]+" do add(verb.options, option) end
    verbs[#verbs + 1] = verb
  end
  assert(#verbs > 0, "no verbs in the help of " .. binary)
  return verbs
end

-- Text as roff sets it without filling lines. A dash is one that can be searched for and copied.
local function verbatim(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-")
  return ".nf\n" .. ("\n" .. text):gsub("\n([.'])", "\n\\&%1"):sub(2):gsub("\n*$", "\n") .. ".fi\n"
end

local function page(title, summary, help, see_also)
  return ('.TH %s 1 "" "lanegate %s" "Lanegate"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n%s.SH SEE ALSO\n%s\n'):format(
    title:upper(), version, title:gsub("%-", "\\-"), summary:gsub("%-", "\\-"), verbatim(help), see_also)
end

local function write_pages(overview, verbs)
  local others = {}
  for i, verb in ipairs(verbs) do
    others[i] = ".BR lanegate\\-" .. verb.name:gsub("%-", "\\-") .. " (1)" .. (i < #verbs and "," or "")
    write("man/man1/lanegate-" .. verb.name .. ".1",
      page("lanegate-" .. verb.name, verb.summary, verb.help, ".BR lanegate (1)"))
  end
  write("man/man1/lanegate.1",
    page("lanegate", "a webhook gateway with ordered lanes", overview, table.concat(others, "\n")))
end

-- Every shell gets the same three lists.
local function write_bash(verbs)
  local lines = { "# bash completion for lanegate", "_lanegate() {",
    "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words= options=",
    "  local -a verbs=(" }
  for _, verb in ipairs(verbs) do lines[#lines + 1] = "    " .. verb.name end
  lines[#lines + 1] = "  )"
  lines[#lines + 1] = "  case $verb in"
  for _, verb in ipairs(verbs) do
    lines[#lines + 1] = ("  %s) words=%s options=%s ;;"):format(verb.name, quoted(table.concat(verb.words, " ")),
      quoted(table.concat(verb.options, " ")))
  end
  lines[#lines + 1] = [=[
  esac
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "${verbs[*]} --help --version" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [ "$COMP_CWORD" = 2 ] && [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _lanegate lanegate
]=]
  write("bash-completion/completions/lanegate", table.concat(lines, "\n"))
end

local function write_zsh(verbs)
  local lines = { "#compdef lanegate", "local verb=${words[2]}", "local -a verbs acts options", "verbs=(" }
  for _, verb in ipairs(verbs) do lines[#lines + 1] = "  " .. quoted(verb.name .. ":" .. verb.summary:gsub(":", "\\:")) end
  lines[#lines + 1] = ")\ncase $verb in"
  for _, verb in ipairs(verbs) do
    lines[#lines + 1] = ("%s) acts=(%s) options=(%s) ;;"):format(verb.name, table.concat(verb.words, " "),
      table.concat(verb.options, " "))
  end
  lines[#lines + 1] = [=[
esac
if ((CURRENT == 2)); then
  _describe 'verb' verbs
elif [[ $PREFIX == -* ]]; then
  compadd -- $options
elif ((CURRENT == 3 && $#acts)); then
  compadd -- $acts
else
  _files
fi
]=]
  write("zsh/vendor-completions/_lanegate", table.concat(lines, "\n"))
end

local function write_fish(verbs)
  local lines = { "# fish completion for lanegate" }
  for _, verb in ipairs(verbs) do
    lines[#lines + 1] = ("complete -c lanegate -f -n __fish_use_subcommand -a %s -d %s"):format(verb.name,
      quoted(verb.summary))
    if #verb.words > 0 then
      lines[#lines + 1] = ("complete -c lanegate -n '__fish_seen_subcommand_from %s' -a %s"):format(verb.name,
        quoted(table.concat(verb.words, " ")))
    end
    for _, option in ipairs(verb.options) do
      lines[#lines + 1] = ("complete -c lanegate -n '__fish_seen_subcommand_from %s' -l %s"):format(verb.name, option:sub(3))
    end
  end
  write("fish/vendor_completions.d/lanegate.fish", table.concat(lines, "\n") .. "\n")
end

for _, path in ipairs { "man/man1", "bash-completion/completions", "zsh/vendor-completions", "fish/vendor_completions.d" } do
  assert(os.execute("mkdir -p " .. quoted(folder .. "/" .. path)))
end
local overview = help_of()
local verbs = verbs_of(overview)
write_pages(overview, verbs)
write_bash(verbs)
write_zsh(verbs)
write_fish(verbs)
