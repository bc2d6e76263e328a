"""Plan: what is measured, and which ratios are asked of it. To add a peer or a bar, add it here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import plan_pipelines
from cases import GROWTH, MICROSECONDS, OPENED, PEAK, READ_SHARE, SIZE, Case, Ratio, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

# Competitor -> the module that speaks for it in competitors/. Environments are in venvs.py.
COMPETITORS = {
    "recordkit": "ours",
    "read": "read_",
    "tensorflow": "tensorflow_",
    "tfx_bsl": "tfx_bsl_",
    "pyarrow": "pyarrow_",
    "array_record": "array_record_",
    "mosaicml": "mosaicml_",
    "extras": "extras",
    "vahidk": "vahidk",
    "webdataset": "webdataset_",
    "grain": "grain_",
    "dali": "dali_",
    "simplejpeg": "simplejpeg_",
    "imports": "imports",
}

READ_SIZES = [1 << bits for bits in range(16, 24)]  # 64 KiB to 8 MiB


ONE, TWO, TF, READ = "recordkit", "recordkit, two threads", "tensorflow", "read()"
# `reduce` of single records switches threads several times a record: on a busy machine with two cores it was 30 times
# slower than of batches. So that no bar is met by TensorFlow's slower way alone, it is held against both.
TF_BATCHES, TF_RECORDS = "tensorflow, batch(1024).reduce", "tensorflow, reduce"
SCHEMA = "recordkit, rk.Schema"


def scan(workload: str, *, to_tensorflow: str | None, to_read: str) -> Task:
    cases = (
        Case(ONE, "recordkit"),
        Case(TWO, "recordkit", {"threads": 2}),
        Case(TF_BATCHES, "tensorflow", {"in_batches": True}),
        Case(TF_RECORDS, "tensorflow", prefix=50_000),
        Case(READ, "read", variants=tuple({"buffer": size} for size in READ_SIZES)),
    )
    ratios = (
        Ratio(ONE, TF_BATCHES, to_tensorflow),
        Ratio(ONE, TF_RECORDS, to_tensorflow),
        Ratio(TWO, TF_BATCHES),
        Ratio(ONE, READ, to_read, percent=True),
        Ratio(TWO, READ, to_read, percent=True),
    )
    return Task(f"scan-{workload}", f"scan {workload.upper()}, both CRCs checked", "scan", workload, cases, ratios)


SINGLE, SHUFFLED, FEW = "tensorflow, parse_single_example", "recordkit, keys shuffled", "recordkit, 1 field of 40"
SCHEMA_TWO, PARQUET, TFX = "recordkit, rk.Schema, two threads", "pyarrow, Parquet", "tfx_bsl"

DECODE_W1 = Task(
    "decode-w1",
    "decode W1 to NumPy batches, all 40 fields; reading and both CRCs included",
    "decode",
    "w1",
    (
        Case(ONE, "recordkit"),
        Case(SCHEMA, "recordkit", {"schema": True}),
        Case(TWO, "recordkit", {"threads": 2}),
        Case(SCHEMA_TWO, "recordkit", {"schema": True, "threads": 2}),
        Case(SHUFFLED, "recordkit", {"file": "shuffled.tfrecord"}),
        Case(FEW, "recordkit", {"select": ["cat_07"]}),
        Case(TF, "tensorflow"),
        Case(SINGLE, "tensorflow", {"one_by_one": True}, prefix=50_000),
        Case(TFX, "tfx_bsl", prefix=200_000),
        Case(PARQUET, "pyarrow"),
    ),
    (
        Ratio(ONE, TF, ">= 10"),
        Ratio(SCHEMA, TF, ">= 10"),
        Ratio(ONE, SINGLE, ">= 80"),
        Ratio(SCHEMA, SINGLE, ">= 80"),
        Ratio(TWO, ONE, ">= 1.7"),
        Ratio(SCHEMA_TWO, SCHEMA, ">= 1.7"),
        Ratio(SHUFFLED, ONE, ">= 0.5"),
        Ratio(FEW, ONE, ">= 2"),
        Ratio(ONE, TFX),
        Ratio(ONE, PARQUET),
    ),
)


def decode(workload: str, variants: tuple[Mapping[str, Any], ...] = ({},)) -> Task:
    cases = (
        Case(ONE, "recordkit"),
        Case(SCHEMA, "recordkit", {"schema": True}),
        Case(TF, "tensorflow", variants=variants),
    )
    ratios = (Ratio(ONE, TF), Ratio(SCHEMA, TF))
    return Task(f"decode-{workload}", f"decode {workload.upper()} to NumPy batches", "decode", workload, cases, ratios)


COLUMNS, DICTS, WRITTEN = "recordkit, columns", "recordkit, dicts", "recordkit, columns to a file"
SCHEMA_COLUMNS, TF_WRITE = "recordkit, columns, rk.Schema", "tensorflow, dicts to a file"
TFX_WRITE, PARQUET_WRITE = "tfx_bsl to a file", "pyarrow, Parquet to a file"

ENCODE_W1 = Task(
    "encode-w1",
    "encode W1 to framed bytes",
    "encode",
    "w1",
    (
        Case(COLUMNS, "recordkit", {"source": "columns"}),
        Case(SCHEMA_COLUMNS, "recordkit", {"source": "schema"}),
        Case(WRITTEN, "recordkit", {"source": "columns", "written": True}, prefix=200_000),
        Case(DICTS, "recordkit", {"source": "dicts"}, prefix=50_000),
        Case(TF_WRITE, "tensorflow", prefix=20_000),
        Case(TFX_WRITE, "tfx_bsl", prefix=200_000),
        Case(PARQUET_WRITE, "pyarrow"),
    ),
    (
        Ratio(COLUMNS, TF_WRITE, ">= 100"),
        Ratio(SCHEMA_COLUMNS, TF_WRITE, ">= 100"),
        Ratio(WRITTEN, TF_WRITE),
        Ratio(DICTS, TF_WRITE, ">= 5"),
        Ratio(WRITTEN, TFX_WRITE),
        Ratio(WRITTEN, PARQUET_WRITE),
    ),
)

FSYNC = ", fsync"


def and_synced(*cases: Case) -> tuple[Case, ...]:
    """Return the cases, and each of them again with what it wrote on the disk at the end."""
    synced = (replace(case, label=case.label + FSYNC, options={**case.options, "sync": True}) for case in cases)
    return (*cases, *synced)


def in_pairs(*ratios: Ratio) -> tuple[Ratio, ...]:
    """Return the ratios of cases that both do without fsync, and of the same ones that both have it."""
    return (*ratios, *(replace(ratio, of=ratio.of + FSYNC, to=f"{ratio.to}{FSYNC}") for ratio in ratios))


RK_WRITE, RK_ROWS, RK_COLUMNS = "recordkit, rk.write", "recordkit, write(row)", "recordkit, write_batch"
TF_EXAMPLES, PLAIN = "tensorflow, tf.train.Example", "write() of the same bytes"

WRITE_W1 = Task(
    "write-w1",
    "write W1 from columns to a dataset on disk",
    "write",
    "w1",
    and_synced(
        Case(RK_WRITE, "recordkit", {"source": "columns"}),
        Case(TF_EXAMPLES, "tensorflow", prefix=20_000),
        Case(PARQUET, "pyarrow"),
        Case(PLAIN, "read"),
    ),
    in_pairs(
        Ratio(RK_WRITE, TF_EXAMPLES, ">= 100"),
        Ratio(RK_WRITE, PARQUET, "> 1"),
        Ratio(RK_WRITE, PLAIN, percent=True),
    ),
)

WRITE_W2 = Task(
    "write-w2",
    "write W2, encoded JPEGs, to a dataset on disk",
    "write",
    "w2",
    and_synced(
        Case(RK_ROWS, "recordkit", {"source": "rows"}),
        Case(RK_COLUMNS, "recordkit", {"source": "columns"}),
        Case(PLAIN, "read"),
    ),
    in_pairs(
        Ratio(RK_ROWS, PLAIN, ">= 0.8", percent=True),
        Ratio(RK_COLUMNS, PLAIN, ">= 0.8", percent=True),
    ),
)

RK_RAW, TF_RAW = "recordkit, write_raw", "tensorflow, TFRecordWriter"
GZIP = {"source": "payloads", "compression": "gzip", "level": 6}
SIZES = f"the size of {RK_RAW} / {TF_RAW}"


def write_gzip(workload: str, prefix: int, *, faster: str | None = None, size: str | None = None) -> Task:
    cases = (Case(RK_RAW, "recordkit", GZIP, prefix=prefix), Case(TF_RAW, "tensorflow", GZIP, prefix=prefix))
    return Task(
        f"write-gzip-{workload}",
        f"write ready payloads of {workload.upper()} with gzip, level 6",
        "write",
        workload,
        and_synced(*cases),
        (*in_pairs(Ratio(RK_RAW, TF_RAW, faster)), Ratio(RK_RAW, TF_RAW, size, words=SIZES, figure=SIZE)),
    )


FLAT, FLAT_GZIP = "recordkit, plain", "recordkit, gzip level 1"

MEMORY = Task(
    "write-memory",
    "memory of a process that writes W3's first vectors again and again",
    "memory",
    "w3",
    (
        Case(FLAT, "recordkit", gigabytes=5),
        Case(FLAT_GZIP, "recordkit", {"compression": "gzip", "level": 1}, gigabytes=2),
    ),
    tuple(
        Ratio(label, None, "< 100", words=f"{label}: memory at its peak, less that after 1 GB", figure=GROWTH)
        for label in (FLAT, FLAT_GZIP)
    ),
    most_repeats=1,
)

# --- Reading whole datasets, and at any place

OPEN, OPEN_DECLARED = "recordkit, rk.open", "recordkit, rk.open(schema=)"
READING = "with both cores; opening and both CRCs included, and inferring the schema where it is not given"


def read(workload: str, *, to_tensorflow: str, to_parquet: str | None = None) -> Task:
    cases = [
        Case(OPEN, "recordkit", {"dataset": True}),
        Case(OPEN_DECLARED, "recordkit", {"dataset": True, "declared": True}),
        Case(TF, "tensorflow"),
    ]
    ratios = [Ratio(OPEN, TF, to_tensorflow), Ratio(OPEN_DECLARED, TF)]
    if to_parquet:
        cases.append(Case(PARQUET, "pyarrow"))
        ratios += [Ratio(OPEN, PARQUET, to_parquet), Ratio(OPEN_DECLARED, PARQUET)]
    title = f"rk.open of {workload.upper()} to NumPy batches, {READING}"
    return Task(f"read-{workload}", title, "decode", workload, tuple(cases), tuple(ratios))


AS_BYTES, AS_ARRAYS, VAHIDK = ", as bytes", ", as arrays", "vahidk/tfrecord, no CRC checked"
LARGE, OBJECTS = {"batch": 1024}, {"batch": 1024, "objects": True}

BYTES_W2 = Task(
    "bytes-w2",
    "rk.open of W2 in batches of 1024, every JPEG as `bytes`, and as arrays of all bytes and where each begins",
    "decode",
    "w2",
    (
        Case(OPEN + AS_BYTES, "recordkit", {"dataset": True, **OBJECTS}),
        Case(OPEN + AS_ARRAYS, "recordkit", {"dataset": True, **LARGE}),
        Case(TF, "tensorflow", LARGE),
        Case(VAHIDK, "vahidk"),
        Case(PARQUET + AS_BYTES, "pyarrow", OBJECTS),
        Case(PARQUET + AS_ARRAYS, "pyarrow", LARGE),
        Case(READ, "read", {"compared": []}, variants=tuple({"buffer": size} for size in READ_SIZES)),
    ),
    (
        Ratio(OPEN + AS_BYTES, TF, ">= 3"),
        Ratio(OPEN + AS_BYTES, VAHIDK, ">= 1"),
        Ratio(OPEN + AS_BYTES, PARQUET + AS_BYTES),
        Ratio(OPEN + AS_ARRAYS, PARQUET + AS_ARRAYS),
        Ratio(OPEN + AS_ARRAYS, READ, ">= 1", percent=True),
    ),
)

OF_OURS, OF_OTHERS = ", gzip of ours", ", gzip of others"
SOME = 200_000


def gzipped(label: str, competitor: str, file: str, **options: Any) -> Case:
    return Case(label, competitor, {"file": file, "compression": "gzip", **options}, prefix=SOME)


READ_GZIP = Task(
    "read-gzip-w1",
    f"rk.open of W1 with gzip to NumPy batches, {READING}",
    "decode",
    "w1",
    (
        gzipped(OPEN + OF_OURS, "recordkit", "ours.tfrecord.gz", dataset=True),
        gzipped(TF + OF_OURS, "tensorflow", "ours.tfrecord.gz"),
        gzipped(OPEN + OF_OTHERS, "recordkit", "foreign.tfrecord.gz", dataset=True),
        gzipped(OPEN_DECLARED + OF_OTHERS, "recordkit", "foreign.tfrecord.gz", dataset=True, declared=True),
        gzipped(TF + OF_OTHERS, "tensorflow", "foreign.tfrecord.gz"),
    ),
    (
        Ratio(OPEN + OF_OURS, TF + OF_OURS, ">= 6"),
        Ratio(OPEN + OF_OTHERS, TF + OF_OTHERS, ">= 2"),
        Ratio(OPEN_DECLARED + OF_OTHERS, TF + OF_OTHERS),
    ),
)

COUNT, TF_LOOP = "recordkit, len(rk.open)", "tensorflow, for record in dataset"

COUNT_W2 = Task(
    "count-w2",
    "count W2 without an index",
    "count",
    "w2",
    (
        Case(COUNT, "recordkit"),
        Case(TF_BATCHES, "tensorflow", {"in_batches": True}),
        Case(TF_RECORDS, "tensorflow"),
        Case(TF_LOOP, "tensorflow", {"in_a_loop": True}),
    ),
    (
        Ratio(COUNT, None, "<= 2", words=f"{COUNT}: time a record", figure=MICROSECONDS, unit="us"),
        Ratio(COUNT, TF_BATCHES, ">= 50"),
        Ratio(COUNT, TF_RECORDS, ">= 50"),
        Ratio(COUNT, TF_LOOP, ">= 50"),
    ),
)

PICKS, AT_ONCE = {"picks": 10_000}, {"at_once": True}
SINGLES, LISTED, MDS = "recordkit, ds[i]", "recordkit, ds[[...]]", "MosaicML MDS"
ARRAY_RECORD, ARRAY_RECORD_LIST = "array_record, one by one", "array_record, all at once"
PLAIN_LIST = "array_record, uncompressed, all at once"
# Groups of one record are what its authors advise for random access; zstd is its default.
ZSTD, UNCOMPRESSED = {"options": "group_size:1"}, {"options": "group_size:1,uncompressed"}

RANDOM_W3 = Task(
    "random-w3",
    "10,000 random records of W3 as NumPy arrays",
    "random",
    "w3",
    (
        Case(SINGLES, "recordkit", PICKS),
        Case(ARRAY_RECORD, "array_record", PICKS, variants=(ZSTD, UNCOMPRESSED)),
        Case(MDS, "mosaicml", PICKS),
        Case(LISTED, "recordkit", PICKS | AT_ONCE),
        Case(ARRAY_RECORD_LIST, "array_record", PICKS | AT_ONCE | ZSTD),
        Case(PLAIN_LIST, "array_record", PICKS | AT_ONCE | UNCOMPRESSED),
    ),
    (
        Ratio(SINGLES, ARRAY_RECORD, ">= 20"),
        Ratio(SINGLES, MDS, ">= 2"),
        Ratio(LISTED, ARRAY_RECORD_LIST, ">= 3"),
        Ratio(LISTED, PLAIN_LIST),
    ),
)

# --- New fields for records that are there

ADDS = {"adds": {"added": "int64"}}
BAKE, BAKE_FILE = "recordkit, add_fields(out=)", "recordkit, add_fields(out=), no manifest"
OVERLAY, CP, RECIPE = "recordkit, add_fields", "cp --reflink=never", "tensorflow, the recipe"
LAYERED, BAKED = "recordkit, through an overlay", "recordkit, baked"


def bake(workload: str, *, to_cp: str, to_recipe: str | None = None) -> Task:
    cases = [
        Case(BAKE, "recordkit", {"file": "dataset", **ADDS}),
        Case(BAKE_FILE, "recordkit", ADDS),
        Case(CP, "read", {"file": "dataset"}),
    ]
    ratios = [Ratio(BAKE, CP, to_cp, percent=True), Ratio(BAKE_FILE, CP, to_cp, percent=True)]
    if to_recipe:
        cases.append(Case(RECIPE, "tensorflow", ADDS, prefix=10_000))
        ratios += [Ratio(BAKE, RECIPE, to_recipe), Ratio(BAKE_FILE, RECIPE, to_recipe)]
    title = f"add an int64 array to the records of {workload.upper()}, in new files"
    return Task(f"bake-{workload}", title, "bake", workload, and_synced(*cases), in_pairs(*ratios))


OVERLAY_W2 = Task(
    "overlay-w2",
    "add an int64 array beside the records of W2 with a manifest, again and again until they are 2 GB",
    "overlay",
    "w2",
    and_synced(
        Case(OVERLAY, "recordkit", {"file": "dataset", **ADDS}, gigabytes=2),
        Case(CP, "read", {"file": "dataset"}, gigabytes=2),
    ),
    (
        *in_pairs(Ratio(OVERLAY, CP, ">= 20")),
        Ratio(OVERLAY, None, "< 1", words=f"{OVERLAY}: how much of the base is read", figure=READ_SHARE, unit="%"),
    ),
)


def read_overlay(workload: str) -> Task:
    options = {"dataset": True, "batch": 1024, **ADDS}
    cases, ratios = [], []
    for threads, workers in (("", {}), (", one thread", {"workers": 1})):
        layered, baked = LAYERED + threads, BAKED + threads
        cases += [
            Case(layered, "recordkit", {"file": "layered", **options, **workers}),
            Case(baked, "recordkit", {"file": "baked", **options, **workers}),
        ]
        ratios.append(Ratio(baked, layered, "< 1.15", words=f"the time of {layered} / {baked}"))
    title = f"rk.open of {workload.upper()} with a field beside the records, and in them"
    return Task(f"read-overlay-{workload}", title, "decode", workload, tuple(cases), tuple(ratios))


VERIFY, VERIFY_TWO = "recordkit, rk.verify", "recordkit, rk.verify, two threads"


def verify(workload: str, to_read: str) -> Task:
    cases = (
        Case(VERIFY, "recordkit", {"threads": 1}),
        Case(VERIFY_TWO, "recordkit", {"threads": 2}),
        Case(READ, "read", variants=tuple({"buffer": size} for size in READ_SIZES)),
    )
    ratios = (Ratio(VERIFY, READ, to_read, percent=True), Ratio(VERIFY_TWO, READ, percent=True))
    return Task(f"verify-{workload}", f"verify {workload.upper()}", "verify", workload, cases, ratios)


def streaming(workload: str) -> Task:
    growth = Ratio(OPEN, None, "< 50", words=f"{OPEN}: memory at its peak, less that after 1 GB", figure=GROWTH)
    return Task(
        f"stream-memory-{workload}",
        f"memory of a process that reads {workload.upper()} again and again, 10 GB in all",
        "streaming",
        workload,
        (Case(OPEN, "recordkit", gigabytes=10),),
        (growth,),
        most_repeats=1,
    )


OPEN_SHARDS = Task(
    "open-shards",
    "open and count a dataset of 10,000 shards, in a fresh process",
    "opening",
    "w1",
    (Case(OPEN, "recordkit", {"file": "shards"}, prefix=20_000),),
    (
        Ratio(OPEN, None, "< 2", words=f"{OPEN}: time to open and count", figure=OPENED, unit="s"),
        Ratio(OPEN, None, "< 200", words=f"{OPEN}: memory at its peak", figure=PEAK),
    ),
)

# recordkit looks up its parts when they are first used, so importing it alone says little: the second one needs NumPy.
NUMPY, IMPORTED, USED = "import numpy", "import recordkit", "from recordkit import Schema, records"

IMPORT = Task(
    "import",
    "import in a fresh interpreter",
    "import",
    None,
    (
        Case(NUMPY, "imports", {"statement": NUMPY}),
        Case(IMPORTED, "imports", {"statement": IMPORTED}),
        Case(USED, "imports", {"statement": USED}),
    ),
    (
        Ratio(NUMPY, IMPORTED, "< 2", words=f"the time of {IMPORTED} / {NUMPY}"),
        Ratio(NUMPY, USED, "< 2", words=f"the time of {USED} / {NUMPY}"),
    ),
    least_repeats=15,
)

TASKS = (
    scan("w1", to_tensorflow=">= 10", to_read=">= 0.5"),
    scan("w2", to_tensorflow=None, to_read=">= 0.7"),
    scan("w3", to_tensorflow=">= 4", to_read=">= 0.7"),
    DECODE_W1,
    decode("w2"),
    decode("w3"),
    decode("w4", ({"lists": "ragged"}, {"lists": "sparse"})),
    ENCODE_W1,
    WRITE_W1,
    WRITE_W2,
    write_gzip("w1", 100_000, faster=">= 3", size="<= 1.03"),
    write_gzip("w3", 10_000),
    MEMORY,
    read("w1", to_tensorflow=">= 18", to_parquet="> 1"),
    read("w3", to_tensorflow=">= 4"),
    BYTES_W2,
    READ_GZIP,
    COUNT_W2,
    RANDOM_W3,
    bake("w2", to_cp=">= 0.75"),
    bake("w3", to_cp=">= 0.6", to_recipe=">= 50"),
    OVERLAY_W2,
    read_overlay("w1"),
    read_overlay("w3"),
    verify("w1", ">= 0.5"),
    verify("w2", ">= 0.7"),
    verify("w3", ">= 0.7"),
    streaming("w1"),
    streaming("w2"),
    OPEN_SHARDS,
    *plan_pipelines.TASKS,
    IMPORT,
)
