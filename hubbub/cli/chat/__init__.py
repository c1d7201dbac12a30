"""The line-based terminal client: `hubbub chat`. Its parts are imported one by one."""
