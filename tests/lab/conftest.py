"""Eight simulated CPU devices, settled before any test uses jax."""

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
