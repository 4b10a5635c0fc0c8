"""Settings for every test: the same examples on every run, and no deadline on a shared machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cgraph", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("cgraph")
