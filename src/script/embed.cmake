# Writes a C file with the text of Lua modules, so that the binary needs no files beside it.
#
#   cmake -DOUT=embedded.c -DROOT=/path/to/lua -P embed.cmake a.lua b.lua
#
# The name of a module is its path under ROOT: lanegate/check.lua is "lanegate.check". With -DFILES=1 the names are paths with their
# endings, of files of any kind. -DTABLE says how the table is named (script_embedded).

if(NOT TABLE)
  set(TABLE script_embedded)
endif()
set(table "")
set(body "#include \"script/embedded.h\"\n")
set(number 0)
math(EXPR last "${CMAKE_ARGC} - 1")
set(files "")
foreach(i RANGE ${last})
  if(CMAKE_ARGV${i} MATCHES "\\.(lua|http)$")
    list(APPEND files ${CMAKE_ARGV${i}})
  endif()
endforeach()

foreach(file ${files})
  file(RELATIVE_PATH module ${ROOT} ${file})
  if(NOT FILES)
    string(REGEX REPLACE "\\.lua$" "" module ${module})
    string(REPLACE "/" "." module ${module})
  endif()
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND body "\nstatic const char text_${number}[] = {\n${hex}0x00};\n")
  string(APPEND table "    {\"${module}\", text_${number}, sizeof text_${number} - 1},\n")
  math(EXPR number "${number} + 1")
endforeach()

string(APPEND body "\nconst struct script_embedded ${TABLE}[] = {\n${table}    {0},\n};\n")
file(WRITE ${OUT} "${body}")
