# What `cmake --install` puts where, and the Debian package that `cpack` makes of it (vendor/package says how it behaves).

find_program(LUAJIT_COMMAND luajit REQUIRED)
set(share ${CMAKE_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${share}/made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}
  COMMAND ${LUAJIT_COMMAND} ${CMAKE_SOURCE_DIR}/vendor/package/manual.lua $<TARGET_FILE:lanegate> ${PROJECT_VERSION} ${share}
  COMMAND ${CMAKE_COMMAND} -E touch ${share}/made
  DEPENDS lanegate ${CMAKE_SOURCE_DIR}/vendor/package/manual.lua
  COMMENT "Making man pages and shell completion"
  VERBATIM)
add_custom_target(manual ALL DEPENDS ${share}/made)

install(TARGETS lanegate RUNTIME DESTINATION bin)
install(TARGETS lanegate_testing LIBRARY DESTINATION lib/lanegate/lanegate)
install(FILES lua/lanegate/testing.lua DESTINATION lib/lanegate/lanegate)
install(DIRECTORY ${share}/ DESTINATION share PATTERN made EXCLUDE)
install(FILES LICENSE DESTINATION share/doc/lanegate RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION share/doc/lanegate)
install(FILES lua/README.md DESTINATION share/doc/lanegate RENAME scripts.md)
install(FILES config/README.md DESTINATION share/doc/lanegate RENAME config.md)
install(DIRECTORY config/examples config/receivers lua/keys lua/editor DESTINATION share/doc/lanegate)
install(FILES config/alerts.yml config/grafana.json DESTINATION share/lanegate)
install(FILES vendor/package/lanegate.service DESTINATION lib/systemd/system)
install(FILES vendor/package/config.lua DESTINATION /etc/lanegate)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Lanegate authors <lanegate@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "webhook gateway with ordered lanes")
set(CPACK_PACKAGE_DESCRIPTION
    "Takes webhooks, verifies them, commits them durably before it answers, and delivers\nthem at least once; per key one at a time, in order.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_FILE_NAME lanegate_${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/vendor/package/conffiles ${CMAKE_SOURCE_DIR}/vendor/package/postinst
    ${CMAKE_SOURCE_DIR}/vendor/package/prerm ${CMAKE_SOURCE_DIR}/vendor/package/postrm)
include(CPack)
