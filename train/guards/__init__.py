"""Guards: checks of a training's metrics, alarms, and the diagnosis of logs of finished runs."""
