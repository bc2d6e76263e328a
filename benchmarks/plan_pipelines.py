"""Plan of what trains: shuffled pipelines, pictures, DataLoader, the first batch, and memory over epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cases import FIRST_BATCH, FIRST_PAGE, GROWTH, JUMP, MIB_A_READ, PEAK, QUALITY, Case, Ratio, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

# --- Eight shards to shuffled batches

SHARDS: Mapping[str, Any] = {"file": "eight", "batch": 256}
SHUFFLED = {**SHARDS, "interleave": 8, "shuffle": {}}
BUFFER = 10_000
TF_BUFFER = {**SHARDS, "buffer": BUFFER}
# As tutorials have it: plainly, and with the hint to parse in parallel that some of them give.
ONE_BY_ONE, IN_PARALLEL = {"one_by_one": True, "parallel": False}, {"one_by_one": True, "parallel": True}
# How many records of a shard come before those of the next.
TURNS = ({"block": 1}, {"block": 64})

GLOBAL, BUFFERED, IN_ORDER = "recordkit, shuffle(7)", "recordkit, shuffle(7, buffer=10_000)", "recordkit, in order"
TUTORIAL, TUTORIAL_TUNED = "tensorflow, parse_single_example", "tensorflow, parse_single_example, AUTOTUNE"
VECTORISED = "tensorflow, batch then parse_example"
BLOCKS, VAHIDK = "pyarrow, shuffled blocks of Parquet", "vahidk/tfrecord, DataLoader"
# How many rows a group of the Parquet file has, which are read and shuffled together.
GROUPS = tuple({"group": rows} for rows in (BUFFER, 65_536, 262_144))
# Workers would each give all records, so there is one at most.
VAHIDK_CASE = Case(VAHIDK, "vahidk", TF_BUFFER, variants=({"workers": 0}, {"workers": 1}), prefix=10_000)

PIPELINE_W1 = Task(
    "pipeline-w1",
    "8 shards of W1, interleaved, shuffled, parsed, in batches of 256, prefetched",
    "pipeline",
    "w1",
    (
        Case(GLOBAL, "recordkit", SHUFFLED),
        Case(BUFFERED, "recordkit", SHUFFLED | {"shuffle": {"buffer": BUFFER}}),
        Case(TUTORIAL, "tensorflow", TF_BUFFER | ONE_BY_ONE, prefix=40_000),
        Case(TUTORIAL_TUNED, "tensorflow", TF_BUFFER | IN_PARALLEL, prefix=40_000),
        Case(VECTORISED, "tensorflow", TF_BUFFER, variants=TURNS, prefix=200_000),
        Case(BLOCKS, "pyarrow", SHARDS, variants=GROUPS),
        VAHIDK_CASE,
    ),
    (
        Ratio(GLOBAL, TUTORIAL, ">= 120"),
        Ratio(GLOBAL, TUTORIAL_TUNED),
        Ratio(GLOBAL, VECTORISED, ">= 10"),
        Ratio(GLOBAL, BLOCKS, ">= 1"),
        Ratio(GLOBAL, VAHIDK),
        Ratio(BUFFERED, TUTORIAL),
        Ratio(BUFFERED, VECTORISED),
    ),
)

LOADER = "recordkit, DataLoader(batch_size=None)"

TORCH_W1 = Task(
    "torch-w1",
    "8 shards of W1, shuffled, through torch's DataLoader, in batches of 256",
    "pipeline",
    "w1",
    (Case(LOADER, "extras", SHUFFLED, variants=({"workers": 0}, {"workers": 2})), VAHIDK_CASE),
    (Ratio(LOADER, VAHIDK, ">= 100"),),
)

PADDED, TUTORIAL_PADDED = {**SHARDS, "pad": 0}, "tensorflow, padded_batch"
VECTORISED_PADDED = "tensorflow, batch, parse_example, to_tensor"
SHUFFLED_TOO = ", shuffled"

PIPELINE_W4 = Task(
    "pipeline-w4",
    "8 shards of W4, lists to padded batches of 256",
    "pipeline",
    "w4",
    (
        Case(IN_ORDER, "recordkit", PADDED),
        Case(GLOBAL, "recordkit", SHUFFLED | PADDED),
        Case(VECTORISED_PADDED, "tensorflow", PADDED, variants=TURNS, prefix=100_000),
        Case(
            VECTORISED_PADDED + SHUFFLED_TOO, "tensorflow", PADDED | {"buffer": BUFFER}, variants=TURNS, prefix=100_000
        ),
        Case(TUTORIAL_PADDED, "tensorflow", PADDED, variants=(ONE_BY_ONE, IN_PARALLEL), prefix=40_000),
    ),
    (
        Ratio(IN_ORDER, VECTORISED_PADDED, ">= 10"),
        Ratio(GLOBAL, VECTORISED_PADDED + SHUFFLED_TOO, ">= 10"),
        Ratio(IN_ORDER, TUTORIAL_PADDED),
    ),
)

# --- Shuffling beside reading in order

WINDOW = "64MB"
WINDOWED = f'recordkit, shuffle(7, window="{WINDOW}")'


def shuffling(workload: str, *, to_order: str | None) -> Task:
    whole = {"file": "dataset"}
    return Task(
        f"shuffle-{workload}",
        f"batches of {workload.upper()} shuffled and in order, from the page cache",
        "pipeline",
        workload,
        (
            Case(IN_ORDER, "recordkit", whole),
            Case(GLOBAL, "recordkit", whole | {"shuffle": {}}),
            Case(WINDOWED, "recordkit", whole | {"shuffle": {"window": WINDOW}}),
        ),
        (
            Ratio(GLOBAL, IN_ORDER, to_order, percent=True),
            Ratio(WINDOWED, IN_ORDER, percent=True),
            Ratio(WINDOWED, None, ">= 1", words=f"{WINDOWED}: size of a read", figure=MIB_A_READ, unit="MiB"),
        ),
    )


# --- Pictures

FULL, SCALED, BARE = "recordkit, decode_images", "recordkit, decode_images(scaled=True)", "simplejpeg, decoding only"
TF_IMAGES, WEBDATASET, GRAIN = "tensorflow", "webdataset, cv2", "grain, cv2"
MDS, DALI = "MosaicML MDS, cv2", "DALI on the CPU"
LABELS = {"compared": ["label"]}
MANIFEST = LABELS | {"file": "dataset"}

IMAGES_W2 = Task(
    "images-w2",
    "W2 to float32[224,224,3] from 0 to 1, resized bilinearly, in batches of 32; records a second are pictures",
    "images",
    "w2",
    (
        Case(FULL, "extras", MANIFEST),
        Case(SCALED, "extras", MANIFEST | {"scaled": True}),
        Case(BARE, "simplejpeg", {"compared": [], "threads": 2}),
        Case(TF_IMAGES, "tensorflow", LABELS),
        Case(WEBDATASET, "webdataset", LABELS | {"workers": 2}),
        Case(GRAIN, "grain", LABELS, variants=({"threads": 2}, {"threads": 16}, {"workers": 2})),
        Case(MDS, "mosaicml", LABELS | {"workers": 2}),
        Case(DALI, "dali", LABELS | {"threads": 2}),
    ),
    (
        Ratio(FULL, BARE, ">= 0.85", percent=True),
        *(Ratio(FULL, peer, "> 1") for peer in (TF_IMAGES, WEBDATASET, GRAIN, MDS, DALI)),
        Ratio(SCALED, TF_IMAGES, ">= 2"),
        Ratio(SCALED, None, ">= 35", words=f"{SCALED}: PSNR to full decoding", figure=QUALITY, unit="dB"),
    ),
)

# --- In fresh processes

FIRST = "recordkit, shuffle(7).batch(256)"

FIRST_BATCH_IDS = Task(
    "first-batch",
    "rk.open of 10,000,000 records with manifest and index, to the first batch of a global shuffle",
    "first",
    "ids",
    (Case(FIRST, "recordkit", {"file": "dataset", "shuffle": {}}),),
    (
        Ratio(FIRST, None, "< 1", words=f"{FIRST}: time from opening", figure=FIRST_BATCH, unit="s"),
        Ratio(FIRST, None, words=f"{FIRST}: memory at its peak", figure=PEAK),
    ),
)


VIEW = "recordkit, view"
VIEW_IDS = Task(
    "view",
    "the page on 10,000,000 records with manifest and index: what it shows first, and 50 pages of records anywhere",
    "view",
    "ids",
    (Case(VIEW, "recordkit", {"file": "dataset"}),),
    (
        Ratio(VIEW, None, "< 1", words=f"{VIEW}: time to the first page", figure=FIRST_PAGE, unit="s"),
        Ratio(VIEW, None, "< 300", words=f"{VIEW}: slowest of 50 jumps", figure=JUMP, unit="ms"),
        Ratio(VIEW, None, "< 300", words=f"{VIEW}: memory at its peak", figure=PEAK),
    ),
)


def epochs(workload: str, label: str, competitor: str, options: Mapping[str, Any]) -> Task:
    growth = Ratio(label, None, "< 50", words=f"{label}: most in epochs 2 to 10, less most in the first", figure=GROWTH)
    return Task(
        f"epochs-memory-{workload}",
        f"memory of a process that goes through W{workload[1:]} 10 times, each time in another order",
        "epochs",
        workload,
        (Case(label, competitor, {**options, "cycles": 10}),),
        (growth,),
        most_repeats=1,
    )


TASKS = (
    PIPELINE_W1,
    TORCH_W1,
    PIPELINE_W4,
    shuffling("w3", to_order=">= 0.6"),
    shuffling("w1", to_order=None),
    IMAGES_W2,
    FIRST_BATCH_IDS,
    VIEW_IDS,
    epochs("w1", GLOBAL, "recordkit", SHUFFLED),
    epochs("w2", FULL, "extras", {"file": "dataset", "shuffle": {}, "images": True}),
)
