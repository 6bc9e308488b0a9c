"""`bismut resume RUN`: go on with a run that was interrupted, killed or out of time."""

from bismut.cli.options import AsJson, Cluster, Force, Insecure, MaxTime, Model, RunFolder, Workers


def resume(
    run: RunFolder,
    model: Model = None,
    force: Force = False,
    max_time: MaxTime = None,
    workers: Workers = None,
    cluster: Cluster = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Resume at the last committed block and checkpoint. The result is that of a run that was never stopped, bit for bit.

    Refused if configuration, dtype, block size, versions, machine or the text of a model have changed; it reports what differs.

    \b
    bismut resume output/heavy-top
    bismut resume output/my_model --model my_model.py:system
    bismut resume output/heavy-top --max-time 2h
    bismut resume output/heavy-top --cluster local:2
    """
    from bismut.cli.runs.going_on import go_on

    go_on(run, {}, model=model, force=force, max_time=max_time, workers=workers, cluster=cluster, insecure=insecure, as_json=as_json)
