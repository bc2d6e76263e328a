"""Run a TensorFlow input script without TensorFlow: only the import line changes."""

from recordkit import tf  # was: import tensorflow as tf

with tf.io.TFRecordWriter("flowers.tfrecord") as writer:
    for i in range(100):
        feature = {
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 5])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"flower {i}".encode()])),
            "size": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 10, i / 20])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writer.write(example.SerializeToString())

spec = {
    "label": tf.io.FixedLenFeature([], tf.int64),
    "name": tf.io.FixedLenFeature([], tf.string),
    "size": tf.io.FixedLenFeature([2], tf.float32),
}


def parse(record):
    """Parse one record, as a TensorFlow tutorial does."""
    example = tf.io.parse_single_example(record, spec)
    return example["size"] / 10.0, example["label"]


dataset = tf.data.TFRecordDataset("flowers.tfrecord").map(parse, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(100, seed=1).batch(32, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
for size, label in dataset:
    print(size.shape, label.numpy()[:5])
