"""Pictures of images, weights and training, each a matplotlib figure that no one else holds."""

from ..extras import extra

with extra("pictures", "mporbm.pictures"):
    from .curves import rank_error_curve, rank_error_panels, training_curves
    from .images import sample_grid, strips
    from .samples import sample_comparison
    from .settings import setting_curves, setting_scatter
    from .weights import receptive_fields, singular_values

__all__ = [
    "rank_error_curve",
    "rank_error_panels",
    "receptive_fields",
    "sample_comparison",
    "sample_grid",
    "setting_curves",
    "setting_scatter",
    "singular_values",
    "strips",
    "training_curves",
]
