# What libmtprof is made of, in the order in which data flows. Explicit on purpose: a file that is
# not listed here is not built.
set(MTPROF_SOURCES
    src/base/alloc.c
    src/base/crc32c.c
    src/base/fail.c
    src/mtprof/format/status.c
)

set(MTPROF_PUBLIC_HEADERS
    include/mtprof/clock.h
    include/mtprof/export.h
    include/mtprof/format.h
    include/mtprof/health.h
    include/mtprof/mtprof.h
    include/mtprof/op.h
    include/mtprof/reader.h
    include/mtprof/session.h
    include/mtprof/source.h
    include/mtprof/status.def
    include/mtprof/status.h
    include/mtprof/trace.h
    include/mtprof/version.h
)
