# How a room, a test and the flags of both are declared.
#
#   room(NAME SOURCES a.c b.c NEEDS envelope json LIBS PkgConfig::SQLITE3)
#
# makes the static library lg_NAME. Its public header is src/NAME/*.h without "_priv"; includes are written
# "NAME/file.h". A room sees the folders of the rooms it NEEDS and of util, and nothing else: every room's
# headers are reached through a folder of links that holds just that room, so a wrong include does not compile.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(H2O REQUIRED IMPORTED_TARGET libh2o-evloop)
pkg_check_modules(LUAJIT REQUIRED IMPORTED_TARGET luajit)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
if(LANEGATE_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

add_library(lg_flags INTERFACE)
target_compile_definitions(lg_flags INTERFACE _GNU_SOURCE LANEGATE_VERSION="${PROJECT_VERSION}")
target_compile_options(lg_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wundef
  -Wwrite-strings -Wold-style-definition -fno-omit-frame-pointer -fno-strict-aliasing)
# Everything can go into lanegate.testing, a shared object; nothing in it is to be seen or replaced from outside.
target_compile_options(lg_flags INTERFACE -fPIC -fvisibility=hidden -fno-semantic-interposition)
target_link_libraries(lg_flags INTERFACE Threads::Threads)
if(LANEGATE_SANITIZE STREQUAL "address")
  target_compile_options(lg_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(lg_flags INTERFACE -fsanitize=address,undefined)
elseif(LANEGATE_SANITIZE STREQUAL "thread")
  target_compile_options(lg_flags INTERFACE -fsanitize=thread)
  target_link_options(lg_flags INTERFACE -fsanitize=thread)
endif()

# A folder with one link to a room's sources: "-I that" makes "room/..." and nothing else includable.
function(room_door NAME OUT)
  set(door ${CMAKE_BINARY_DIR}/doors/${NAME})
  file(MAKE_DIRECTORY ${door})
  if(NOT EXISTS ${door}/${NAME})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${NAME} ${door}/${NAME} SYMBOLIC)
  endif()
  set(${OUT} ${door} PARENT_SCOPE)
endfunction()

function(room NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;NEEDS;LIBS" ${ARGN})
  add_library(lg_${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(lg_${NAME} PRIVATE lg_flags)
  foreach(seen ${NAME} util ${ARG_NEEDS})
    room_door(${seen} door)
    target_include_directories(lg_${NAME} PRIVATE ${door})
  endforeach()
  target_link_libraries(lg_${NAME} PRIVATE ${ARG_LIBS})
  foreach(needed util ${ARG_NEEDS})
    if(NOT needed STREQUAL NAME)
      # Linked, not included: include paths stay as narrow as NEEDS says.
      target_link_libraries(lg_${NAME} INTERFACE lg_${needed})
    endif()
  endforeach()
endfunction()

# A room that is loaded by another program: a shared object FILE.so in FOLDER, with what it NEEDS linked in.
function(room_module NAME)
  cmake_parse_arguments(ARG "" "FILE;FOLDER" "SOURCES;NEEDS;LIBS" ${ARGN})
  add_library(lanegate_${NAME} MODULE ${ARG_SOURCES})
  set_target_properties(lanegate_${NAME} PROPERTIES PREFIX "" OUTPUT_NAME ${ARG_FILE} LIBRARY_OUTPUT_DIRECTORY ${ARG_FOLDER})
  target_link_libraries(lanegate_${NAME} PRIVATE lg_flags ${ARG_LIBS})
  foreach(seen util ${ARG_NEEDS})
    room_door(${seen} door)
    target_include_directories(lanegate_${NAME} PRIVATE ${door})
    target_link_libraries(lanegate_${NAME} PRIVATE lg_${seen})
  endforeach()
endfunction()

# How long a test may take, in seconds. The thread sanitizer makes everything five to fifteen times slower.
set(LANEGATE_TEST_TIMEOUT 300)
if(LANEGATE_SANITIZE STREQUAL "thread")
  set(LANEGATE_TEST_TIMEOUT 1500)
endif()

# unit_test(ROOM FILE [NEEDS ...] [LIBS ...]): one cmocka program, label "unit". Sees the room, what it NEEDS,
# and spec/support.
function(unit_test ROOM FILE)
  cmake_parse_arguments(ARG "" "" "NEEDS;LIBS;SOURCES" ${ARGN})
  get_filename_component(base ${FILE} NAME_WE)
  set(target unit_${ROOM}_${base})
  add_executable(${target} ${FILE} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE lg_flags lg_${ROOM} PkgConfig::CMOCKA ${ARG_LIBS})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/spec/support)
  target_compile_definitions(${target} PRIVATE SPEC_DIR="${CMAKE_SOURCE_DIR}/spec")
  foreach(seen ${ROOM} util ${ARG_NEEDS})
    room_door(${seen} door)
    target_include_directories(${target} PRIVATE ${door})
    target_link_libraries(${target} PRIVATE lg_${seen})
  endforeach()
  add_test(NAME unit/${ROOM}/${base} COMMAND ${target})
  set_tests_properties(unit/${ROOM}/${base} PROPERTIES LABELS unit TIMEOUT ${LANEGATE_TEST_TIMEOUT})
endfunction()
